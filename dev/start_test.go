package dev_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/testkit"
)

// machine runs start.sh in a tree with scripts in place of programs.
type machine struct {
	bin, root string
	home      string
}

const goProgram = `case $1 in
version) echo go version go1.26.0 linux/amd64 ;;
env) echo "$HOME/$2" ;;
build)
	shift
	echo "compiles $*"
	mkdir -p bin
	printf '#!/bin/sh\necho "devstack $*"\n' >bin/devstack
	chmod +x bin/devstack ;;
esac`

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{bin: t.TempDir(), root: t.TempDir(), home: t.TempDir()}
	for _, name := range []string{"sh", "sed", "dirname", "mkdir", "chmod"} {
		path, err := exec.LookPath(name)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(path, filepath.Join(m.bin, name)))
	}
	script, err := os.ReadFile("start.sh")
	require.NoError(t, err)
	m.file(t, "dev/start.sh", string(script))
	m.file(t, "go.mod", "module example.org/copy\n\ngo 1.26.0\n")
	m.has(t, "go", goProgram)
	m.has(t, "id", "echo ada")
	return m
}

func (m *machine) file(t *testing.T, name, content string) {
	t.Helper()
	path := filepath.Join(m.root, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

func (m *machine) has(t *testing.T, name, does string) {
	t.Helper()
	path := filepath.Join(m.bin, name)
	require.NoError(t, os.RemoveAll(path))
	testkit.Script(t, path, does+"\n")
}

func (m *machine) start(t *testing.T, args ...string) (output string, err error) {
	t.Helper()
	script := filepath.Join(m.root, "dev", "start.sh")
	cmd := exec.CommandContext(t.Context(), filepath.Join(m.bin, "sh"), append([]string{script}, args...)...)
	cmd.Env = []string{"PATH=" + m.bin, "HOME=" + m.home}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestWhatIsMissingIsReportedWithTheRemedy(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		command string
		setup   func(t *testing.T, m *machine)
		want    []string
	}{
		"no Go": {
			"run", func(t *testing.T, m *machine) { require.NoError(t, os.Remove(filepath.Join(m.bin, "go"))) },
			[]string{"Go is needed", "go.dev/dl"},
		},
		"an old Go": {
			"run", func(t *testing.T, m *machine) { m.has(t, "go", "echo go version go1.19.8 linux/amd64") },
			[]string{"go1.19.8 linux/amd64 is too old", "1.21 is the least, 1.26.0 is what"},
		},
		"no Docker": {
			"containers", func(*testing.T, *machine) {}, []string{"needs Docker", "make run needs none"},
		},
		"no compose plugin": {
			"containers", func(t *testing.T, m *machine) {
				m.has(t, "docker", `echo "docker: unknown command: docker $1"; exit 1`)
			},
			[]string{"its compose plugin is not", "docker-compose-v2", "docker-compose-plugin"},
		},
		"no daemon": {
			"containers", func(t *testing.T, m *machine) {
				m.has(t, "docker", `[ "$2" = version ] || { echo "Cannot connect to the Docker daemon"; exit 1; }`)
			},
			[]string{"Docker does not answer: Cannot connect", "Start it, or let ada use it"},
		},
		"an old Docker": {
			"containers", func(t *testing.T, m *machine) { m.has(t, "docker", `[ "$2" = version ] || echo 24.0.7`) },
			[]string{"Docker 24.0.7 is too old"},
		},
		"no such command": {
			"walk", func(*testing.T, *machine) {}, []string{"usage:"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			test.setup(t, m)
			said, err := m.start(t, test.command)
			require.Error(t, err, said)
			for _, want := range test.want {
				require.Contains(t, said, want)
			}
			require.NotContains(t, said, "devstack run")
		})
	}
}

func TestStart(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	said, err := m.start(t, "run", "--examples", "--set", "A=b c")
	require.NoError(t, err, said)
	require.Equal(t, "Compiling, once: a minute or two. Later starts take seconds.\n"+
		"compiles -v -o bin/ ./dev/cmd/devstack\ndevstack run --by-make --examples --set A=b c\n", said,
		"without the folder the program refuses the flag")
	m.file(t, "cmd/twinbox/main.go", "")
	m.file(t, "examples/cmd/devstack/main.go", "")
	said, err = m.start(t, "run", "--examples")
	require.NoError(t, err, said)
	require.Equal(t,
		"compiles -v -o bin/ ./examples/cmd/devstack ./cmd/twinbox\ndevstack run --by-make --examples\n", said)
	said, err = m.start(t, "demo")
	require.NoError(t, err, said)
	require.Equal(t, "compiles -v -o bin/ ./dev/cmd/devstack ./cmd/twinbox\ndevstack demo --by-make\n", said)
}

func TestContainersNeedNothingMore(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.has(t, "docker", "echo 27.1")
	said, err := m.start(t, "containers")
	require.NoError(t, err)
	require.Empty(t, said)
}
