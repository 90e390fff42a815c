package deploy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return string(content)
}

func find(t *testing.T, text, pattern string) string {
	t.Helper()
	matches := regexp.MustCompile(`(?m)`+pattern).FindAllStringSubmatch(text, -1)
	require.Len(t, matches, 1, pattern)
	return matches[0][1]
}

// An image with an older Go than go.mod fails in the middle of the build.
func TestGoVersionIsOne(t *testing.T) {
	t.Parallel()
	const line = `^go (\d+\.\d+)(\.\d+)?$`
	want := find(t, read(t, "go.mod"), line)
	require.Equal(t, want, find(t, read(t, "Dockerfile"), `^ARG GO_VERSION=(\d+\.\d+)`))
	require.Equal(t, want, find(t, read(t, ".github/workflows/ci.yml"), `go-version: "(\d+\.\d+)"`))
	for _, pattern := range []string{"*.mod", "*/*.mod"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, file := range files {
			name, err := filepath.Rel(root, file)
			require.NoError(t, err)
			require.Equal(t, want, find(t, read(t, name), line), name)
		}
	}
}

func TestDockerfile(t *testing.T) {
	t.Parallel()
	file := read(t, "Dockerfile")
	program := find(t, file, `^ENTRYPOINT \["(/\w+)"\]$`)
	require.Equal(t, program, find(t, file, `^COPY --from=build /\w+ (/\w+)$`))
	require.Contains(t, file, ` CMD ["`+program+`", "healthcheck"]`)
	require.DirExists(t, filepath.Join(root, find(t, file, `^ARG PROGRAM=(\S+)$`)))
	require.NotContains(t, file, "mod download")
	require.NotContains(t, file, "syntax=")
}
