package dev_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// machine is a machine on which start.sh runs: the programs of its PATH are scripts, beside those that POSIX has.
type machine struct {
	bin string
	env map[string]string
}

// everySystemHas are the programs that start.sh may use without a look.
var everySystemHas = []string{
	"sh", "sed", "awk", "df", "dirname", "readlink", "grep", "cat", "getconf", "rm", "mkdir",
}

// newMachine is a bare Linux with Go: no PostgreSQL, no npm, no Maven, no Docker.
func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{bin: t.TempDir(), env: map[string]string{
		"HOME": t.TempDir(), "POSTGRES_PLACES": "", "MUSL": "", "npm_config_registry": "https://registry.example.org",
	}}
	for _, name := range everySystemHas {
		path, err := exec.LookPath(name)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(path, filepath.Join(m.bin, name)))
	}
	m.has(t, "go", `case $1 in version) echo go version go1.26.0 linux/amd64;; *) echo "go $*"; exit 9;; esac`)
	m.has(t, "uname", `case $1 in -s) echo Linux;; *) echo x86_64;; esac`)
	m.has(t, "id", `case $1 in -u) echo 1000;; *) echo ada;; esac`)
	m.has(t, "apt-get", "")
	m.has(t, "curl", "exit 0")
	return m
}

func (m *machine) has(t *testing.T, name, does string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(m.bin, name)), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(m.bin, name), []byte("#!/bin/sh\n"+does+"\n"), 0o755))
}

func (m *machine) lacks(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, os.Remove(filepath.Join(m.bin, name)))
}

// postgres installs that version.
func (m *machine) postgres(t *testing.T, version string) {
	t.Helper()
	m.has(t, "initdb", "")
	m.has(t, "postgres", "echo 'postgres (PostgreSQL) "+version+"'")
}

// start runs the script and gives what it says. It never comes to a compilation: this machine's go only knows its
// version, so a check that lets everything pass ends with what go was asked.
func (m *machine) start(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(m.bin, "sh"), append([]string{"start.sh"}, args...)...)
	cmd.Env = []string{"PATH=" + m.bin}
	for name, value := range m.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	require.Error(t, cmd.Run(), said.String())
	return said.String()
}

func TestWhatIsMissingIsSaidWithTheRemedy(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args  []string
		setup func(t *testing.T, m *machine)
		want  []string
	}{
		"no Go": {
			[]string{"run"},
			func(t *testing.T, m *machine) { m.lacks(t, "go") },
			[]string{"Go is needed", "go.dev/dl", "sudo apt-get install -y golang"},
		},
		"an old Go": {[]string{"run"}, func(t *testing.T, m *machine) {
			m.has(t, "go", "echo go version go1.19.8 linux/amd64")
		}, []string{"go1.19.8 linux/amd64 is too old", "1.21 is the least"}},
		"no PostgreSQL, no network": {
			[]string{"run"},
			func(t *testing.T, m *machine) { m.has(t, "curl", "exit 6") },
			[]string{
				"PostgreSQL 15 or later is needed (found: none)", "https://registry.example.org does not answer", "HTTPS_PROXY",
				"sudo apt-get install -y postgresql", "PG_BIN=",
			},
		},
		"an old PostgreSQL, no network": {[]string{"run"}, func(t *testing.T, m *machine) {
			m.has(t, "curl", "exit 6")
			m.postgres(t, "13.14")
		}, []string{"needed (found: 13)"}},
		"no PostgreSQL, musl": {[]string{"run"}, func(t *testing.T, m *machine) {
			m.env["MUSL"] = m.bin
			m.lacks(t, "apt-get")
			m.has(t, "apk", "")
		}, []string{"this system has musl", "sudo apk add postgresql"}},
		"no PostgreSQL, an unknown platform": {[]string{"run"}, func(t *testing.T, m *machine) {
			m.has(t, "uname", `case $1 in -s) echo FreeBSD;; *) echo riscv64;; esac`)
		}, []string{"no package for FreeBSD on riscv64"}},
		"no HOME": {
			[]string{"run"},
			func(t *testing.T, m *machine) { m.env["HOME"] = "" },
			[]string{"HOME is not set", "HOME=/some/folder make run"},
		},
		"no Java": {
			[]string{"kafka"},
			func(*testing.T, *machine) {},
			[]string{"Java 17 or later is needed (found: none)", "apt-get install -y default-jre-headless"},
		},
		"an old Java": {[]string{"kafka"}, func(t *testing.T, m *machine) {
			m.has(t, "java", `echo 'openjdk version "11.0.2" 2019-01-15' >&2`)
		}, []string{"found: 11"}},
		"no Maven": {[]string{"kafka"}, func(t *testing.T, m *machine) {
			m.has(t, "java", `echo 'openjdk version "21.0.2" 2024-01-15' >&2`)
		}, []string{"Maven is needed to fetch Apache Kafka", "apt-get install -y maven"}},
		"no Docker": {
			[]string{"containers"},
			func(*testing.T, *machine) {},
			[]string{"needs Docker", "make run needs none"},
		},
		"no compose plugin": {[]string{"containers"}, func(t *testing.T, m *machine) {
			m.has(t, "docker", `echo "docker: unknown command: docker $1"; exit 1`)
		}, []string{"its compose plugin is not", "docker-compose-v2", "docker-compose-plugin"}},
		"no buildx plugin": {[]string{"containers"}, func(t *testing.T, m *machine) {
			m.has(t, "docker", `[ "$1" = compose ]`)
		}, []string{"its buildx plugin is not", "docker-buildx"}},
		"no daemon": {[]string{"containers"}, func(t *testing.T, m *machine) {
			m.has(t, "docker", `[ "$2" = version ] || { echo "Cannot connect to the Docker daemon"; exit 1; }`)
		}, []string{"Docker does not answer", "start it"}},
		"no right to Docker": {[]string{"containers"}, func(t *testing.T, m *machine) {
			m.has(t, "docker", `[ "$2" = version ] || { echo "permission denied while trying to connect"; exit 1; }`)
		}, []string{"does not let ada in", "usermod"}},
		"an old Docker": {[]string{"containers"}, func(t *testing.T, m *machine) {
			m.has(t, "docker", `[ "$2" = version ] || echo 24.0.7`)
		}, []string{"Docker 24.0.7 is too old"}},
		"too little room": {[]string{"run"}, func(t *testing.T, m *machine) {
			m.postgres(t, "18.4")
			m.lacks(t, "df")
			m.has(t, "df", "echo Filesystem 1024-blocks Used Available; echo /dev/x 100 90 10240")
			m.has(t, "go", `case $1 in version) echo go version go1.26.0;; env) echo "$HOME/$2";; esac`)
		}, []string{"Too little room: a first start needs about 200 MB", "has 10 MB left"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			test.setup(t, m)
			said := m.start(t, test.args...)
			for _, want := range test.want {
				require.Contains(t, said, want)
			}
			require.NotContains(t, said, "go list", "nothing is compiled before everything is there")
		})
	}
}

func TestWhatIsThereIsEnough(t *testing.T) {
	t.Parallel()
	for name, setup := range map[string]func(t *testing.T, m *machine){
		"PostgreSQL in PATH": func(t *testing.T, m *machine) { m.postgres(t, "15.2") },
		"PostgreSQL elsewhere": func(t *testing.T, m *machine) {
			m.postgres(t, "13.2")
			other := &machine{bin: t.TempDir()}
			other.postgres(t, "17.1")
			m.env["POSTGRES_PLACES"] = other.bin
		},
		"PostgreSQL that was fetched": func(t *testing.T, m *machine) {
			m.has(t, "curl", "exit 6")
			fetched := &machine{bin: filepath.Join(m.env["HOME"], ".cache/twinbox/postgresql-18.4.0-linux-amd64/bin")}
			fetched.postgres(t, "18.4")
		},
		"a folder that is named": func(t *testing.T, m *machine) {
			m.has(t, "curl", "exit 6")
			m.env["PG_BIN"] = "/somewhere"
		},
		"npm, with a mirror of its own": func(t *testing.T, m *machine) {
			m.has(t, "curl", "exit 6")
			m.has(t, "npm", "")
		},
		"a network": func(*testing.T, *machine) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			setup(t, m)
			said := m.start(t, "run")
			require.NotContains(t, said, "is needed", "it came as far as compiling")
			require.NotContains(t, said, "not set")
		})
	}
}

// The script cannot read the list that the program has.
func TestTheSamePlacesAsInTheProgram(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile("local/postgres/binaries/find.go")
	require.NoError(t, err)
	_, list, found := strings.Cut(string(program), "var places = []string{")
	require.True(t, found)
	list, _, _ = strings.Cut(list, "\n}")
	script, err := os.ReadFile("start.sh")
	require.NoError(t, err)
	places := regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(list, -1)
	require.NotEmpty(t, places)
	for _, place := range places {
		require.Contains(t, string(script), place[1])
	}
}
