package deploy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/services"
)

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return string(content)
}

// find returns the first group of the pattern's only match.
func find(t *testing.T, text, pattern string) string {
	t.Helper()
	matches := regexp.MustCompile(`(?m)`+pattern).FindAllStringSubmatch(text, -1)
	require.Len(t, matches, 1, pattern)
	return matches[0][1]
}

// An image with an older Go than go.mod asks for fails in the middle of the build.
func TestGoVersionIsOne(t *testing.T) {
	t.Parallel()
	want := find(t, read(t, "go.mod"), `^go (\d+\.\d+)(\.\d+)?$`)
	require.Equal(t, want, find(t, read(t, "Dockerfile"), `^ARG GO_VERSION=(\d+\.\d+)`))
	require.Equal(t, want, find(t, read(t, ".github/workflows/ci.yml"), `go-version: "(\d+\.\d+)"`))
	for _, tools := range []string{
		"dev/go.mod", "go.work", "tools.mod", "golangci-lint.mod", "openapi-lint.mod",
		"bench/go.mod",
		"examples/go.mod",
		"internal/inbox/kv/go.mod",
	} {
		require.Equal(t, want, find(t, read(t, tools), `^go (\d+\.\d+)(\.\d+)?$`), tools)
	}
}

var copied = regexp.MustCompile(`(?m)^COPY (?:--from=[a-z-]+ )?(.+) (\S+)$`)

func TestDockerfile_CopiesWhatExists(t *testing.T) {
	t.Parallel()
	for _, line := range copied.FindAllStringSubmatch(read(t, "Dockerfile"), -1) {
		for source := range strings.FieldsSeq(line[1]) {
			if command, built := strings.CutPrefix(source, "/out/"); built {
				source = filepath.Join("cmd", command, "main.go")
				if !slices.Contains(services.Names(), command) {
					source = filepath.Join("examples", source)
				}
			}
			_, err := os.Stat(filepath.Join(root, source))
			require.NoError(t, err, line[0])
		}
	}
}

// The stages are the build targets that compose names; each starts and checks the one binary it has.
func TestDockerfile_StagesRunTheirCommand(t *testing.T) {
	t.Parallel()
	var stages []string
	for _, stage := range strings.Split(read(t, "Dockerfile"), "\nFROM ")[1:] {
		first, body, _ := strings.Cut(stage, "\n")
		name := find(t, first, ` AS ([\w-]+)$`)
		if strings.HasPrefix(name, "build") {
			continue
		}
		stages = append(stages, name)
		require.Regexp(t, "(?m)^COPY --from=build(-examples)? /out/"+name+" /"+name+"$", body)
		require.Contains(t, body, `ENTRYPOINT ["/`+name+`"]`)
		require.Contains(t, body, `CMD ["/`+name+`", "healthcheck"]`)
	}
	built := names()
	built = append(built, forwarder)
	require.ElementsMatch(t, built, stages)
	for name, service := range compose(t).Services {
		if service.Build != nil {
			require.True(t, slices.Contains(stages, service.Build.Target), name)
		}
	}
}

// go mod download fetches what only the tests need as well, into a cache that no layer holds.
func TestDockerfile_FetchesWhatItCompiles(t *testing.T) {
	t.Parallel()
	require.NotContains(t, read(t, "Dockerfile"), "mod download")
}

// A syntax line is an image of its own, which a registry is asked for at each build.
func TestDockerfile_NeedsNoOtherSyntax(t *testing.T) {
	t.Parallel()
	require.NotContains(t, read(t, "Dockerfile"), "syntax=")
}

func TestInitSQL_MakesTheDatabasesOfCompose(t *testing.T) {
	t.Parallel()
	sql := read(t, "deploy/postgres/init.sql")
	for _, name := range names() {
		url := *compose(t).Services[name].Environment["DATABASE_URL"]
		own := "twinbox_" + name
		require.Equal(t, "postgres://"+own+":"+name+"@postgres:5432/"+own+"?sslmode=disable", url)
		owner := own + "_owner"
		require.Equal(t, "postgres://"+owner+":"+name+"_owner@postgres:5432/"+own+"?sslmode=disable",
			*compose(t).Services[name+"-migrate"].Environment["MIGRATE_DATABASE_URL"])
		require.NotContains(t, compose(t).Services[name].Environment, "MIGRATE_DATABASE_URL", "who serves does not know it")
		require.Contains(t, sql, "create role "+owner+" login password '"+name+"_owner' connection limit")
		require.Contains(t, sql, "create role "+own+" login password '"+name+"' connection limit")
		require.Contains(t, sql, "create database "+own+" owner "+owner+";")
		require.Contains(t, sql, "revoke connect, temporary on database "+own+" from public;")
		require.Contains(t, sql, "grant connect on database "+own+" to "+own+";")
	}
}
