package pgtest_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

// childVariable runs the tests below, which fail on purpose, in a child process.
const childVariable = "TWINBOX_TEST_PGTEST_CHILD"

func runTest(t *testing.T, name string, environ ...string) (output string, code int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+name+"$", "-test.count=1")
	cmd.Env = append(append(os.Environ(), childVariable+"=1"), environ...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func TestChildThatFails(t *testing.T) {
	if os.Getenv(childVariable) == "" {
		return // run by TestFailedTestKeepsItsDatabase
	}
	pool := pgtest.New(t, migrations.Inbox)
	fmt.Println("database", pool.Config().ConnConfig.Database)
	t.Fail() // on purpose
}

func TestFailedTestKeepsItsDatabase(t *testing.T) {
	t.Parallel()
	out, code := runTest(t, "TestChildThatFails", "TMPDIR="+testkit.Folder(t))
	require.Equal(t, 1, code, out)
	kept := regexp.MustCompile(`pgtest: kept \[(test_\w+)\] in (\S+);`).FindStringSubmatch(out)
	require.NotNil(t, kept, out)
	require.Contains(t, out, "database "+kept[1])
	require.FileExists(t, filepath.Join(kept[2], "data", "PG_VERSION"))
	require.NoFileExists(t, filepath.Join(kept[2], "data", "postmaster.pid"), "the server has ended")
}

func TestChildWithoutPostgres(t *testing.T) {
	if os.Getenv(childVariable) == "" {
		return // run by TestMissingPostgresIsAFailure
	}
	pgtest.New(t)
}

func TestMissingPostgresIsAFailure(t *testing.T) {
	t.Parallel()
	out, code := runTest(t, "TestChildWithoutPostgres", "PG_BIN="+t.TempDir())
	require.Equal(t, 1, code, out)
	require.Contains(t, out, "no PostgreSQL for this test")
	require.NotContains(t, out, "SKIP")
}
