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
