package binaries

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestInstalledNewestFirst(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, version := range []string{"9.6", "15", "17", "16"} {
		script(t, filepath.Join(root, "a", version, "bin"), version)
	}
	script(t, filepath.Join(root, "b-18", "bin"), "18")
	found := installed([]string{root + "/a/*/bin", root + "/none-*/bin", root + "/b-*/bin"})
	for i, want := range []string{"a/17/bin", "a/16/bin", "a/15/bin", "a/9.6/bin", "b-18/bin"} {
		require.Equal(t, filepath.Join(root, want), found[i], "places come in order, versions newest first")
	}
}

func TestFindFollowsPATH(t *testing.T) {
	root := t.TempDir()
	target := filepath.Join(root, "real")
	script(t, target, "16.2")
	require.NoError(t, os.Mkdir(filepath.Join(root, "links"), 0o755))
	require.NoError(t, os.Symlink(filepath.Join(target, "initdb"), filepath.Join(root, "links", "initdb")))
	t.Setenv("PATH", filepath.Join(root, "links"))

	resolved, err := filepath.EvalSymlinks(target)
	require.NoError(t, err)
	require.Equal(t, resolved, Find()[0], "one program is linked, both stand beside its target")
}

func TestFindIgnoresClientOnlyInstallations(t *testing.T) {
	root := t.TempDir()
	script(t, root, "16.2")
	require.NoError(t, os.Remove(filepath.Join(root, "postgres")))
	t.Setenv("PATH", root)
	require.NotContains(t, Find(), root)
}

func TestEnsureByVersion(t *testing.T) {
	t.Parallel()
	named := filepath.Join(t.TempDir(), "named")
	script(t, named, "16.2")
	old := filepath.Join(t.TempDir(), "old")
	script(t, old, "14.9")
	broken := filepath.Join(t.TempDir(), "broken")
	script(t, broken, "unknown")
	var fetches atomic.Int32

	tests := map[string]struct {
		dir, major, want string
	}{
		"named":                     {dir: named, want: named},
		"named, of that version":    {dir: named, major: "16", want: named},
		"named, of another version": {dir: named, major: "18"},
		"named, too old":            {dir: old},
		"named, not there":          {dir: filepath.Join(old, "none")},
		"named, broken":             {dir: broken},
		"cannot be fetched":         {major: "17"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := options(t, fakeClient(t, "18.4", &fetches))
			opts.Dir, opts.Major = test.dir, test.major
			dir, err := Ensure(t.Context(), opts)
			require.Equal(t, test.want, dir)
			require.Equal(t, test.want == "", err != nil)
		})
	}
}

// An installation that is broken does not hide what comes behind it, installed or fetched; it is only said beside what
// else was wrong.
func TestEnsurePassesWhatCannotSayItsVersion(t *testing.T) {
	broken, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	script(t, broken, "unknown")
	t.Setenv("PATH", broken)
	require.Equal(t, broken, Find()[0])
	var fetches atomic.Int32
	opts := options(t, fakeClient(t, "18.4", &fetches))
	opts.SkipInstalled = false
	dir, err := Ensure(t.Context(), opts)
	require.NoError(t, err)
	require.NotEqual(t, broken, dir)

	opts.Major = "19"
	_, err = Ensure(t.Context(), opts)
	require.ErrorIs(t, err, ErrVersion)
	require.ErrorContains(t, err, broken, "it may be the one")
}

func TestMajor(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"18.4": "18", "15.18 (Debian 15.18-0+deb12u1)": "15", "19devel": "19"} {
		dir := t.TempDir()
		script(t, dir, text)
		major, err := Major(t.Context(), dir)
		require.NoError(t, err)
		require.Equal(t, want, major)
	}
	dir := t.TempDir()
	script(t, dir, "unknown")
	_, err := Major(t.Context(), dir)
	require.ErrorContains(t, err, "no number")
}

// A program that is still open for writing in a child forked at a bad moment is asked again.
func TestMajorWaitsForABusyProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script(t, dir, "18.4")
	writer, err := os.OpenFile(filepath.Join(dir, "postgres"), os.O_WRONLY, 0)
	require.NoError(t, err)
	closed := make(chan error, 1)
	time.AfterFunc(3*busyPause, func() { closed <- writer.Close() })
	major, err := Major(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, "18", major)
	require.NoError(t, <-closed)
}
