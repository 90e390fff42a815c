package deploy_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// engine is a docker command that answers what a test wants and writes down what it was told.
type engine struct {
	dir    string
	script string // that is run against it
}

func newEngine(t *testing.T, answers string) engine {
	t.Helper()
	e := engine{dir: t.TempDir(), script: "../../deploy/containers.sh"}
	script := "#!/bin/sh\ncd " + e.dir + "\necho \"$*\" >>log\ncase \"$*\" in\n" + answers + "\nesac\n"
	require.NoError(t, os.WriteFile(filepath.Join(e.dir, "docker"), []byte(script), 0o755))
	return e
}

// runs calls containers.sh and gives what it said, what it told the engine, and whether it worked.
func (e engine) runs(t *testing.T, env []string, args ...string) (said string, told []string, worked bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{e.script}, args...)...)
	cmd.Env = append([]string{"PATH=" + e.dir + ":" + os.Getenv("PATH"), "COMPOSE=docker  compose"}, env...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	log, readErr := os.ReadFile(filepath.Join(e.dir, "log"))
	require.NoError(t, readErr)
	return output.String(), strings.Split(strings.TrimSpace(string(log)), "\n"), err == nil
}

const upCommand = "compose up --no-build --detach --remove-orphans --wait --wait-timeout 180"

func TestUp(t *testing.T) {
	t.Parallel()
	said, told, worked := newEngine(t, "").runs(t, nil, "up")
	require.True(t, worked, said)
	require.Equal(t, []string{"compose build", "compose ps --quiet", upCommand}, told)
}

func TestUpOfTwoInstances(t *testing.T) {
	t.Parallel()
	said, told, worked := newEngine(t, `*--scale*) echo "port $NOTIFICATION_ADMIN_PORT";;`).
		runs(t, []string{"NOTIFICATIONS=2"}, "up")
	require.True(t, worked, said)
	require.Equal(t, upCommand+" --scale notification=2", told[len(told)-1])
	require.Contains(t, said, "port 0")
}

// The file that makes the roles is read by another user than the one who checked it out, perhaps under a umask of 077.
func TestUpLetsTheServerReadItsFirstStatements(t *testing.T) {
	t.Parallel()
	tree := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(tree, "deploy", "postgres"), 0o700))
	script := filepath.Join(tree, "deploy", "containers.sh")
	statements := filepath.Join(tree, "deploy", "postgres", "init.sql")
	require.NoError(t, os.WriteFile(script, []byte(read(t, "deploy/containers.sh")), 0o600))
	require.NoError(t, os.WriteFile(statements, nil, 0o600))
	e := newEngine(t, "")
	e.script = script
	said, _, worked := e.runs(t, nil, "up")
	require.True(t, worked, said)
	info, err := os.Stat(statements)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o644), info.Mode().Perm())
}

// Kafka was away: it is back, and what compose knows of it is that it was unhealthy.
func TestUpRepairsWhatIsUnhealthy(t *testing.T) {
	t.Parallel()
	said, told, worked := newEngine(t, `
"compose ps --quiet") echo 1f; echo 2f;;
inspect*)
	echo "/twinbox-postgres-1 healthy"
	[ -e restarted ] || echo "/twinbox-kafka-1 unhealthy"
	echo "/twinbox-job-1 ";;
restart*) touch restarted;;
*" up "*) [ -e restarted ];;`).runs(t, nil, "up")
	require.True(t, worked, said)
	require.Contains(t, told, "restart twinbox-kafka-1")
	require.Contains(t, said, "Starting again what is unhealthy: twinbox-kafka-1")
}

// It becomes unhealthy only while compose waits.
func TestUpTriesAgainAfterARepair(t *testing.T) {
	t.Parallel()
	said, told, worked := newEngine(t, `
"compose ps --quiet") echo 1f;;
inspect*) [ ! -e tried ] || echo "/twinbox-customer-1 unhealthy";;
*" up "*) [ -e tried ] || { touch tried; exit 1; };;`).runs(t, nil, "up")
	require.True(t, worked, said)
	require.Contains(t, told, "restart twinbox-customer-1")
}

func TestUpShowsWhyAJobFailed(t *testing.T) {
	t.Parallel()
	said, told, worked := newEngine(t, `
*" up "*) exit 1;;
"compose ps --all"*)
	echo "postgres running 0 healthy"
	echo "customer-topics exited 0 "
	echo "customer-migrate exited 2 ";;
"compose logs"*customer-migrate) echo "LOG_LEVEL: not_allowed";;`).runs(t, nil, "up")
	require.False(t, worked)
	require.Contains(t, said, "== customer-migrate: exited, exit code 2")
	require.Contains(t, said, "LOG_LEVEL: not_allowed")
	require.NotContains(t, said, "== customer-topics")
	require.NotContains(t, said, "== postgres")
	require.Equal(t, 1, strings.Count(strings.Join(told, "\n"), upCommand), "nothing was unhealthy: nothing to repair")
}

func TestDownLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	_, told, worked := newEngine(t, "").runs(t, nil, "down")
	require.True(t, worked)
	require.Equal(t, []string{"compose --profile * down --remove-orphans"}, told, "of no profile")
}

func TestResetIsRefusedWhileContainersRun(t *testing.T) {
	t.Parallel()
	// One that is paused is listed only where no status is asked for.
	running := newEngine(t, `*"ps --services") echo kafka; echo postgres;;`)
	said, told, worked := running.runs(t, nil, "stopped")
	require.False(t, worked)
	require.Contains(t, said, "Containers run: kafka postgres - stop them first (make down)")
	require.NotContains(t, strings.Join(told, "\n"), "down ")

	said, _, worked = newEngine(t, "").runs(t, nil, "stopped")
	require.True(t, worked, said)
	_, told, worked = newEngine(t, "").runs(t, nil, "reset")
	require.True(t, worked)
	require.Equal(t, "compose --profile * down --volumes --remove-orphans", told[len(told)-1])
}

func TestResetWithoutAnEngine(t *testing.T) {
	t.Parallel()
	for command, says := range map[string]string{ // make reset calls both, and says it once
		"stopped": "", "reset": "Docker does not answer, so containers and volumes, if there are any, stay as they are.\n",
	} {
		said, _, worked := newEngine(t, "*) echo 'Cannot connect to the Docker daemon'; exit 1;;").runs(t, nil, command)
		require.True(t, worked)
		require.Equal(t, says, said)
	}
}

// The drill itself needs Docker. What can be said without: it can be read, and it kills what must come back.
func TestDrillCanBeRead(t *testing.T) {
	t.Parallel()
	output, err := exec.CommandContext(t.Context(), "bash", "-n", "../../deploy/drill.sh").CombinedOutput()
	require.NoError(t, err, string(output))
	script, err := os.ReadFile("../../deploy/drill.sh")
	require.NoError(t, err)
	for _, service := range []string{"customer", "notification", "kafka", "postgres", "mailpit"} {
		require.Regexp(t, `(?m)^for service in .*\b`+service+`\b`, string(script))
	}
}
