package binaries

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/testkit"
)

func script(t *testing.T, dir, version string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for _, name := range []string{"initdb", "postgres"} {
		testkit.Script(t, filepath.Join(dir, name), "echo \""+name+" (PostgreSQL) "+version+"\"\n")
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
	require.Equal(t, resolved, find()[0], "one program is linked, both are next to its target")
}

func TestAClientOnlyInstallationIsIncomplete(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	script(t, root, "16.2")
	require.False(t, isIncomplete(root))
	require.NoError(t, os.Remove(filepath.Join(root, "postgres")))
	require.True(t, isIncomplete(root))
}

// dataOf's directory for "" does not exist yet.
func dataOf(t *testing.T, major string) string {
	t.Helper()
	dir := t.TempDir()
	if major != "" {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "PG_VERSION"), []byte(major+"\n"), 0o600))
	}
	return dir
}

func TestEnsureByVersion(t *testing.T) {
	t.Parallel()
	named, old, broken := t.TempDir(), t.TempDir(), t.TempDir()
	script(t, named, "16.2 (Debian 16.2-0+deb12u1)")
	script(t, old, "14.9")
	script(t, broken, "unknown")
	tests := map[string]struct {
		dir, major, want string
		err              error
	}{
		"named":                     {dir: named, want: named},
		"named, of that version":    {dir: named, major: "16", want: named},
		"named, of another version": {dir: named, major: "18", err: ErrVersion},
		"named, too old":            {dir: old, err: ErrVersion},
		"named, not there":          {dir: filepath.Join(old, "none"), err: os.ErrNotExist},
		"cannot be fetched":         {major: "17", err: ErrVersion},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := newRegistry(t, "18.4").options(t)
			opts.dir, opts.data = test.dir, dataOf(t, test.major)
			dir, err := ensure(t.Context(), opts)
			require.Equal(t, test.want, dir)
			require.ErrorIs(t, err, test.err)
		})
	}
	_, err := ensure(t.Context(), options{dir: broken})
	require.ErrorContains(t, err, "no number")
}

func TestEnsurePassesABrokenInstallation(t *testing.T) {
	broken, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	script(t, broken, "unknown")
	t.Setenv("PATH", broken)
	require.Equal(t, broken, find()[0])
	opts := newRegistry(t, "18.4").options(t)
	opts.skipInstalled = false
	dir, err := ensure(t.Context(), opts)
	require.NoError(t, err)
	require.NotEqual(t, broken, dir)
	opts.data = dataOf(t, "19")
	_, err = ensure(t.Context(), opts)
	require.ErrorIs(t, err, ErrVersion)
	require.ErrorContains(t, err, broken, "it may be the one")
}

func TestWithoutHome(t *testing.T) {
	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	installed := t.TempDir()
	script(t, installed, "16.2")
	t.Setenv("PATH", installed+":"+os.Getenv("PATH"))
	dir, err := ensure(t.Context(), options{})
	require.NoError(t, err)
	require.NotEmpty(t, dir)
	if os.Geteuid() == 0 {
		return // root's cache is the system's
	}
	_, err = ensure(t.Context(), options{skipInstalled: true})
	require.ErrorIs(t, err, ErrNotFound)
	require.ErrorContains(t, err, "HOME")
}
