package deploy_test

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/testkit"
)

// engine is a docker command that gives a test's answers and writes down its calls.
type engine struct {
	dir    string
	script string
}

// newEngine answers with the cases of a shell script, and lists two services and their jobs.
func newEngine(t *testing.T, answers string) engine {
	t.Helper()
	e := engine{dir: t.TempDir(), script: "../../deploy/containers.sh"}
	script := "cd " + e.dir + "\necho \"$*\" >>log\ncase \"$*\" in\n" + answers + `
*" --services") printf '%s\n' setup-b postgres setup-a customer;;
*"port customer 8080") echo 127.0.0.1:18080;;
esac
`
	testkit.Script(t, filepath.Join(e.dir, "docker"), script)
	return e
}

// runs calls containers.sh. It publishes no port but those in env.
func (e engine) runs(t *testing.T, env []string, args ...string) (said string, asked []string, worked bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{e.script}, args...)...)
	cmd.Env = []string{"PATH=" + e.dir + ":" + os.Getenv("PATH"), "COMPOSE=docker  compose"}
	for _, file := range append(added(t), root+"/docker-compose.yml") {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, port := range regexp.MustCompile(`\${(\w+_PORT):-`).FindAllStringSubmatch(string(content), -1) {
			cmd.Env = append(cmd.Env, port[1]+"=0")
		}
	}
	cmd.Env = append(cmd.Env, env...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	log, readErr := os.ReadFile(filepath.Join(e.dir, "log"))
	if !os.IsNotExist(readErr) {
		require.NoError(t, readErr)
	}
	return output.String(), strings.Split(strings.TrimSpace(string(log)), "\n"), err == nil
}

func (e engine) inTree(t *testing.T) (copied engine, tree string) {
	t.Helper()
	tree = t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(tree, "deploy", "postgres"), 0o700))
	e.script = filepath.Join(tree, "deploy", "containers.sh")
	require.NoError(t, os.WriteFile(e.script, []byte(read(t, "deploy/containers.sh")), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(tree, "docker-compose.yml"), []byte("services:\n"), 0o600))
	return e, tree
}

const upCommand = "compose up --no-build --no-deps --detach --remove-orphans --wait --wait-timeout 180 "

func TestUp(t *testing.T) {
	t.Parallel()
	said, asked, worked := newEngine(t, `
"compose ps --quiet") echo 1f;;
*com.docker.compose.service*) echo "customer 127.0.0.1:18080 127.0.0.1:8081";;`).runs(t, nil, "up")
	require.True(t, worked, said)
	all := strings.Join(asked, "\n")
	require.Contains(t, all, "\ncompose build\n")
	require.Regexp(t, `(?s)compose pull .*\ncompose run --rm --no-TTY setup-a\ncompose run --rm --no-TTY setup-b\n.*`+
		upCommand+`postgres customer\n`, all)
	require.Contains(t, all, "\ncompose rm --force setup-a setup-b\n", "compose restart would run them too early")
	require.Contains(t, said, "  customer      127.0.0.1:18080 127.0.0.1:8081\n")
	require.Contains(t, said, "curl -XPOST http://127.0.0.1:18080/v1/signups")
}

func TestUpWith(t *testing.T) {
	t.Parallel()
	e, tree := newEngine(t, `*" up "*) echo "files $COMPOSE_FILE, port $NOTIFICATION_ADMIN_PORT";;`).inTree(t)
	for _, file := range []string{"more/compose.yml", "deploy/other/compose.yml", "docker-compose.override.yml"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(tree, file)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(tree, file), nil, 0o600))
	}
	said, asked, worked := e.runs(t, []string{"WITH=other more", "NOTIFICATIONS=2"}, "up")
	require.True(t, worked, said)
	require.Contains(t, said, "files docker-compose.yml:docker-compose.override.yml:"+
		"deploy/other/compose.yml:more/compose.yml, port 0\n", "two instances cannot have one port")
	require.Contains(t, asked, upCommand+"--scale notification=2 postgres customer")
	said, _, worked = e.runs(t, []string{"WITH=none"}, "up")
	require.False(t, worked)
	require.Contains(t, said, "WITH=none: there is no none/compose.yml and no deploy/none/compose.yml.")
}

// The servers run as other users, and umask may be 077.
func TestUpLetsTheServersReadTheirFiles(t *testing.T) {
	t.Parallel()
	e, tree := newEngine(t, "").inTree(t)
	statements := filepath.Join(tree, "deploy", "postgres", "databases.sql")
	require.NoError(t, os.WriteFile(statements, nil, 0o600))
	said, _, worked := e.runs(t, nil, "up")
	require.True(t, worked, said)
	for path, want := range map[string]os.FileMode{statements: 0o644, filepath.Dir(statements): 0o755} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, want, info.Mode().Perm(), path)
	}
}

func occupiedPort(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	return port
}

// The port of this project's own container is free.
func TestUpFindsOccupiedPorts(t *testing.T) {
	t.Parallel()
	port := occupiedPort(t)
	said, asked, worked := newEngine(t, "").runs(t, []string{"CUSTOMER_PORT=" + port}, "up")
	require.False(t, worked)
	require.Regexp(t, `^Port `+port+` is in use by another program. Move it: CUSTOMER_PORT=\d+ make up\n$`, said)
	require.NotContains(t, asked, "compose build")
	said, _, worked = newEngine(t, `
"compose ps --quiet") echo 1f;;
*com.docker.compose.service*) echo "customer 127.0.0.1:`+port+`";;`).runs(t, []string{"CUSTOMER_PORT=" + port}, "up")
	require.True(t, worked, said)
}

// Compose accepts each of these lines, and publishes on the last one's port.
func TestUpFindsOccupiedPortsOfTheFile(t *testing.T) {
	t.Parallel()
	port := occupiedPort(t)
	for _, line := range []string{"A_PORT=%", `A_PORT="%" # mine`, "export A_PORT='%'", "A_PORT = %\r", "A_PORT: %"} {
		e, tree := newEngine(t, "").inTree(t)
		ports := "services: {a: {ports: ['127.0.0.1:${A_PORT:-1}:1']}}\n"
		require.NoError(t, os.WriteFile(filepath.Join(tree, "docker-compose.yml"), []byte(ports), 0o600))
		content := "#A_PORT=2\nA_PORT=3\n" + strings.ReplaceAll(line, "%", port) + "\n"
		require.NoError(t, os.WriteFile(filepath.Join(tree, ".env"), []byte(content), 0o600))
		said, _, worked := e.runs(t, nil, "up")
		require.False(t, worked, line)
		require.Regexp(t, `^Port `+port+` is in use by another program. Move it: A_PORT=\d+ make up\n$`, said, line)
	}
}

// A container's last health check may be from before the broker came back, or fail while compose waits.
func TestUpRepairsWhatIsUnhealthy(t *testing.T) {
	t.Parallel()
	for when, unhealthy := range map[string]string{"before": "[ -e restarted ]", "while it waits": "[ ! -e tried ]"} {
		said, asked, worked := newEngine(t, `
"compose ps --quiet") echo 1f; echo 2f;;
*com.docker.compose.service*) ;;
inspect*) `+unhealthy+` || echo "/twinbox-kafka-1 unhealthy";;
restart*) touch restarted;;
"compose ps --all"*) echo "kafka running 0 unhealthy";;
"compose logs"*kafka) echo "no space left on device";;
*" up "*) touch tried; [ -e restarted ];;`).runs(t, nil, "up")
		require.True(t, worked, said)
		require.Contains(t, asked, "restart twinbox-kafka-1", when)
		require.Contains(t, said, "Restarting what is unhealthy: twinbox-kafka-1")
		if when == "while it waits" {
			require.Regexp(t, "(?s)no space left.*Restarting", said, "the reason comes first")
		}
	}
}

func TestUpRepairsWhatAJobNeeds(t *testing.T) {
	t.Parallel()
	said, asked, worked := newEngine(t, `
"compose ps --quiet") echo 1f;;
*com.docker.compose.service*) ;;
inspect*) [ ! -e tried ] || [ -e restarted ] || echo "/twinbox-kafka-1 unhealthy";;
restart*) touch restarted;;
*" setup-a") touch tried; [ -e restarted ];;`).runs(t, nil, "up")
	require.True(t, worked, said)
	require.Contains(t, asked, "restart twinbox-kafka-1")
	require.Contains(t, asked, "compose run --rm --no-TTY setup-b")
}

func TestUpStopsAtAJobThatFails(t *testing.T) {
	t.Parallel()
	said, asked, worked := newEngine(t, `
*" setup-a") echo "LOG_LEVEL: is not one of"; exit 2;;
"compose ps --all"*)
	echo "postgres running 0 healthy"
	echo "setup-databases exited 3 ";;
"compose logs"*setup-databases) echo "no such role";;`).runs(t, nil, "up")
	require.False(t, worked)
	require.Contains(t, said, "LOG_LEVEL: is not one of")
	require.Contains(t, said, "== setup-databases: exited, exit code 3 - its last lines:\nno such role\n")
	require.NotContains(t, said, "== postgres")
	require.Contains(t, said, "setup-a failed. What ran before still runs.")
	require.NotContains(t, strings.Join(asked, "\n"), " up ")
	require.NotContains(t, asked, "compose run --rm --no-TTY setup-b")
}

func TestDownLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	said, asked, worked := newEngine(t, `*down*) echo "files $COMPOSE_FILE";;`).runs(t, nil, "down")
	require.True(t, worked)
	require.Equal(t, []string{"compose down --remove-orphans"}, asked)
	require.Equal(t, len(added(t)), strings.Count(said, "/compose.yml"), "of whatever was added")
}

func TestReset(t *testing.T) {
	t.Parallel()
	const (
		folder  = "run ./dev/cmd/devstack reset" // the call of Go, which the engine writes down, too
		volumes = "compose down --volumes --remove-orphans"
		idle    = `*"ps --services") ;;`
	)
	for name, c := range map[string]struct {
		answers, goes, says string
		does                []string
	}{
		// A paused container is listed only where no status is asked for.
		"containers run": {
			`*"ps --services") echo kafka; echo postgres;;`, "docker",
			"Containers run: kafka postgres - stop them first (make down); nothing was removed.", nil,
		},
		"make run runs": {idle + "\n'" + folder + "') exit 1;;", "docker", "", []string{folder}},
		"nothing runs":  {idle, "docker", "", []string{folder, volumes}},
		"no Go":         {idle, "no-go", ".twinbox/ stays: without Go", []string{volumes}},
		"no engine":     {"compose*) exit 1;;", "docker", "Docker does not answer.", []string{folder}},
	} {
		e, tree := newEngine(t, c.answers).inTree(t)
		require.NoError(t, os.Mkdir(filepath.Join(tree, ".twinbox"), 0o755))
		said, asked, worked := e.runs(t, []string{"GO=" + c.goes}, "reset")
		require.Equal(t, name != "containers run" && name != "make run runs", worked, "%s: %s", name, said)
		require.Contains(t, said, c.says, name)
		for _, deed := range []string{folder, volumes} {
			require.Equal(t, slices.Contains(c.does, deed), slices.Contains(asked, deed), "%s: %s", name, deed)
		}
	}
}

// The drill needs Docker. Here it is only parsed.
func TestDrillCanBeRead(t *testing.T) {
	t.Parallel()
	output, err := exec.CommandContext(t.Context(), "bash", "-n", "../../deploy/drill.sh").CombinedOutput()
	require.NoError(t, err, string(output))
	for _, service := range []string{"customer", "notification", "kafka", "postgres", "mailpit"} {
		require.Regexp(t, `(?m)^for service in .*\b`+service+`\b`, read(t, "deploy/drill.sh"))
	}
}
