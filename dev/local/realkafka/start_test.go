package realkafka

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// withJava replaces java and pretends that the jars exist.
func withJava(t *testing.T, script string) Config {
	t.Helper()
	bin, cache := t.TempDir(), t.TempDir()
	script = "#!/bin/sh\n" + script
	require.NoError(t, os.WriteFile(filepath.Join(bin, "java"), []byte(script), 0o755))
	require.NoError(t, os.Mkdir(filepath.Join(cache, "kafka-"+Version), 0o755))
	t.Setenv("PATH", bin+":/bin:/usr/bin")
	t.Setenv("TMPDIR", t.TempDir())
	return Config{CacheDir: cache}
}

// The error has Kafka's own words.
func TestAStartThatFails(t *testing.T) {
	for name, c := range map[string]struct{ script, says string }{
		"format": {"echo no space left; exit 1", "(17 or newer is needed): exit status 1: \"no space left"},
		"ended": {
			`case "$*" in *StorageTool*) exit;; esac; echo the disk is full; exit 1`,
			"it ended before it was ready: \"the disk is full",
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := withJava(t, c.script)
			_, err := Start(t.Context(), cfg)
			require.ErrorContains(t, err, c.says)
			left, err := os.ReadDir(os.TempDir())
			require.NoError(t, err)
			require.Empty(t, left, "a temporary data folder goes with it")
		})
	}
}

func TestAFolderOfTheCallersStays(t *testing.T) {
	cfg := withJava(t, `case "$*" in *StorageTool*) echo prepared twice; exit 1;; esac; echo "$@"; exit 1`)
	cfg.Dir = filepath.Join(t.TempDir(), "kafka")
	require.NoError(t, os.MkdirAll(filepath.Join(cfg.Dir, "data"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(cfg.Dir, "data", "meta.properties"), nil, 0o600))
	_, err := Start(t.Context(), cfg)
	require.ErrorContains(t, err, "kafka.Kafka "+filepath.Join(cfg.Dir, "server.properties"))
	require.FileExists(t, filepath.Join(cfg.Dir, "kafka.log"))
	content, err := os.ReadFile(filepath.Join(cfg.Dir, "server.properties"))
	require.NoError(t, err)
	settings := map[string]string{}
	for line := range strings.Lines(string(content)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		settings[name] = value
	}
	broker, controller, found := strings.Cut(settings["listeners"], ",")
	require.True(t, found)
	require.Regexp(t, `^PLAINTEXT://127\.0\.0\.1:[1-9]\d*$`, broker, "loopback only")
	require.Regexp(t, `^CONTROLLER://127\.0\.0\.1:[1-9]\d*$`, controller)
	require.Equal(t, broker, settings["advertised.listeners"])
	require.Equal(t, "1@"+strings.TrimPrefix(controller, "CONTROLLER://"), settings["controller.quorum.voters"])
	require.Equal(t, filepath.Join(cfg.Dir, "data"), settings["log.dirs"])
	require.Equal(t, "false", settings["auto.create.topics.enable"], "a misspelt topic is an error")
}

func TestAStartThatIsGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	impatient := errors.New("Ctrl-C")
	cfg := withJava(t, `case "$*" in *StorageTool*) exit;; esac; exec sleep 60`)
	cfg.Progress = func(what string) {
		if strings.HasPrefix(what, "starting") {
			cancel(impatient)
		}
	}
	_, err := Start(ctx, cfg)
	require.ErrorIs(t, err, impatient) // returns once the process has ended
}

func TestAFetchIsKept(t *testing.T) {
	bin, cache := t.TempDir(), t.TempDir()
	script := `#!/bin/sh
for arg; do case $arg in -DoutputDirectory=*) mkdir "${arg#*=}"; touch "${arg#*=}/a.jar";; esac; done
`
	require.NoError(t, os.WriteFile(filepath.Join(bin, "mvn"), []byte(script), 0o755))
	t.Setenv("PATH", bin+":/bin:/usr/bin")
	said := ""
	jars, err := ensureJars(t.Context(), Config{CacheDir: cache, Progress: func(what string) { said += what }})
	require.NoError(t, err)
	require.Equal(t, filepath.Join(cache, "kafka-"+Version), jars)
	require.FileExists(t, filepath.Join(jars, "a.jar"))
	require.Contains(t, said, "fetching")
	t.Setenv("PATH", t.TempDir())
	again, err := ensureJars(t.Context(), Config{CacheDir: cache})
	require.NoError(t, err)
	require.Equal(t, jars, again)
	left, err := os.ReadDir(cache)
	require.NoError(t, err)
	require.Len(t, left, 1, "what was beside it is gone")
}
