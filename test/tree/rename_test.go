package tree_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/services"
)

// A clone runs these tests, too: a test leaves out its own path.
var elsewhere = []string{
	"github.com/acme/shop", "gitlab.com/other/my-mart", "example.org/platform/teams/growth/event-hub",
	"git.example.net/a/stall-7",
}

const definitions = "internal/contract/definitions.go"

func identity(t *testing.T, dir string) (module, name string) {
	t.Helper()
	return find(t, dir, "go.mod", `(?m)^module (\S+)`)[0],
		find(t, dir, "internal/service/eventing/config.go", ` project = "(.+)"`)[0]
}

func find(t *testing.T, dir, glob, pattern string) (found []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, glob))
	require.NoError(t, err)
	for _, path := range paths {
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(read(t, path), -1) {
			found = append(found, match[1])
		}
	}
	return found
}

// try ignores the caller's settings of git.
func try(t *testing.T, dir, name string, args ...string) (output string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "CGO_ENABLED=0",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	said, err := cmd.CombinedOutput()
	return string(said), err
}

func must(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	said, err := try(t, dir, name, args...)
	require.NoError(t, err, "%s %v: %s", name, args, said)
	return said
}

func commit(t *testing.T, dir string) {
	t.Helper()
	must(t, dir, "git", "add", "--all", "--force")
	must(t, dir, "git", "commit", "--quiet", "--allow-empty", "--message", "a")
}

func treeOf(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	must(t, dir, "git", "init", "--quiet")
	commit(t, dir)
	return dir
}

// copyOfTree includes files that are not committed.
func copyOfTree(t *testing.T) (dir string) {
	t.Helper()
	files := map[string]string{}
	listed := must(t, root, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	for name := range strings.SplitSeq(strings.TrimSuffix(listed, "\x00"), "\x00") {
		if content, err := os.ReadFile(filepath.Join(root, name)); !os.IsNotExist(err) { // removed and not committed
			require.NoError(t, err)
			files[name] = string(content)
		}
	}
	return treeOf(t, files)
}

func rename(t *testing.T, dir string, args ...string) (output string, err error) {
	t.Helper()
	return try(t, dir, "sh", append([]string{"dev/rename.sh"}, args...)...)
}

func renamed(t *testing.T, from, module string) (dir, name string) {
	t.Helper()
	dir = t.TempDir()
	must(t, dir, "git", "clone", "--quiet", from, ".")
	said, err := rename(t, dir, module)
	require.NoError(t, err, said)
	commit(t, dir)
	is, name := identity(t, dir)
	require.Equal(t, module, is)
	require.Contains(t, said, name)
	return dir, name
}

func TestTwoProjectsShareNothing(t *testing.T) {
	t.Parallel()
	module, name := identity(t, root)
	others := slices.DeleteFunc(slices.Clone(elsewhere), func(path string) bool { return filepath.Base(path) == name })
	tree := copyOfTree(t)
	one, oneName := renamed(t, tree, others[0])
	other, otherName := renamed(t, tree, others[1])
	first, second := resourcesOf(t, one), resourcesOf(t, other)
	snake := strings.ReplaceAll(oneName, "-", "_")
	resources := []string{"volume " + oneName + "_postgres"}
	for _, name := range services.Names() {
		resources = append(resources, "image "+oneName+"/"+name+":local", "role "+snake+"_"+name,
			"database "+snake+"_"+name, "source /"+oneName+"/"+name)
	}
	for _, d := range contract.All() {
		resources = append(resources, "topic "+oneName+"."+strings.TrimPrefix(d.Topic, contract.TopicPrefix),
			"type "+find(t, one, definitions, `TypePrefix += "(.+)"`)[0]+strings.TrimPrefix(d.Type, contract.TypePrefix))
	}
	for _, resource := range resources {
		require.Contains(t, first, resource)
	}
	require.Len(t, second, len(first))
	for resource := range first {
		require.NotContains(t, second, resource)
	}
	requireGone(t, one, name, module)
	requireSound(t, one)

	again, _ := renamed(t, one, others[1])
	require.Equal(t, second, resourcesOf(t, again), "a renamed tree is renamed like any other")
	requireGone(t, again, oneName, others[0])
	notices := regexp.MustCompile(`(?m)^Copyright .*$`)
	owner := func(name string) string { return "The " + name + " authors" }
	before, after := notices.FindAllString(read(t, filepath.Join(root, "LICENSE")), -1),
		notices.FindAllString(read(t, filepath.Join(again, "LICENSE")), -1)
	require.Equal(t, before, after[:len(before)], "the notices that were there stay")
	require.Len(t, after, len(before)+2)
	require.Contains(t, after[len(before)], owner(oneName))
	require.Contains(t, after[len(before)+1], owner(otherName))
}

// resourcesOf lists what a project uses outside its folder. The optional folders may be gone.
func resourcesOf(t *testing.T, dir string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	files := []string{filepath.Join(dir, "docker-compose.yml")}
	for _, glob := range []string{"*/compose.yml", "*/*/compose.yml"} {
		more, err := filepath.Glob(filepath.Join(dir, glob))
		require.NoError(t, err)
		files = append(files, more...)
	}
	options, err := cli.NewProjectOptions(files, cli.WithWorkingDirectory(dir), cli.WithProfiles([]string{"*"}))
	require.NoError(t, err)
	project, err := options.LoadProject(t.Context())
	require.NoError(t, err)
	found["project "+project.Name] = true
	for _, volume := range project.Volumes {
		found["volume "+volume.Name] = true
	}
	for _, network := range project.Networks {
		found["network "+network.Name] = true
	}
	for _, service := range project.Services {
		if service.Build != nil {
			found["image "+service.Image] = true
		}
	}
	for _, file := range files {
		dsn := regexp.MustCompile(`postgres://(\w+):\w+@[\w:]+/(\w+)`)
		for _, match := range dsn.FindAllStringSubmatch(read(t, file), -1) {
			found["role "+match[1]], found["database "+match[2]] = true, true
		}
	}
	topics := find(t, dir, definitions, `TopicPrefix += "(.+)"`)[0]
	types := find(t, dir, definitions, `TypePrefix += "(.+)"`)[0]
	for _, name := range append(find(t, dir, "internal/*/*.go", ` TopicPrefix \+ "(.+)"`),
		find(t, dir, "examples/*/contract/*.go", `\.TopicPrefix \+ "(.+)"`)...) {
		found["topic "+topics+name] = true
	}
	for _, source := range []struct{ kind, glob, pattern string }{
		{"topic", "api/asyncapi.yaml", `(?m)^ +address: (\S+)$`},
		{"topic", "examples/forwarder/*.go", `env:"FORWARD_TOPIC" envDefault:"([^"]+)"`},
		{"topic", "examples/forwarder/*.go", `env:"FORWARD_DEAD_TOPIC" envDefault:"([^"]+)"`},
		{"type", "api/asyncapi.yaml", `(?m)^ +name: (\w+\.\S+\.v\d+)$`},
		{"source", "internal/contract/*.go", `\bSource\w+ += "([^"]+)"`},
		{"source", "examples/*/contract/*.go", `\bSource\w+ += "([^"]+)"`},
		{"schema", definitions, `DataSchema: +"([^"]+)"`},
		{"schema", "examples/*/contract/*.go", `DataSchema: +"([^"]+)"`},
		{"group", "internal/service/eventing/config.go", ` project = "([^"]+)"`},
		{"group", "examples/forwarder/*.go", `env:"FORWARD_GROUP" envDefault:"([^"]+)"`},
		{"bucket", "examples/forwarder/*.go", `env:"NATS_BUCKET" envDefault:"([^"]+)"`},
		{"state", ".gitignore", `(?m)^/(\.\w\S*)/$`},
		{"variables", "cmd/*/main.go", `DefaultEnvars\("(\w+)"\)`},
		{"cache", "dev/local/cache/cache.go", `dir = "(/var/cache/[^"]+)"`},
		{"temporary", "dev/local/postgres/socket.go", `socketPrefix = "([^"]+)"`},
		{"problems", "internal/web/problem.go", `typeBase = "([^"]+)"`},
	} {
		names := find(t, dir, source.glob, source.pattern)
		for _, name := range names {
			found[source.kind+" "+name] = true
		}
		if !strings.HasPrefix(source.glob, "examples/") && source.glob != "cmd/*/main.go" && len(contract.All()) > 0 {
			require.NotEmpty(t, names, "%s in %s", source.kind, source.glob)
		}
	}
	for _, declared := range find(t, dir, "api/asyncapi.yaml", `(?m)^ +name: (\w+\.\S+\.v\d+)$`) {
		require.Contains(t, declared, types)
	}
	return found
}

// requireGone allows the earlier name only in the license.
func requireGone(t *testing.T, dir, name, module string) {
	t.Helper()
	words := strings.Split(name, "-")
	// "github" does not contain the name "hub": it is a longer word.
	pattern := regexp.MustCompile(`(?i)` + strings.Join(words, `[-_]?`))
	lower := regexp.MustCompile(`[a-z]`)
	for file := range strings.SplitSeq(strings.TrimSuffix(must(t, dir, "git", "ls-files", "-z"), "\x00"), "\x00") {
		text := file + "\n" + read(t, filepath.Join(dir, file))
		if file == "LICENSE" || strings.Contains(text, "\x00") {
			continue
		}
		require.NotContains(t, text, module, file)
		for _, at := range pattern.FindAllStringIndex(text, -1) {
			from, to := max(0, at[0]-1), min(len(text), at[1]+1)
			part := lower.MatchString(text[from:at[0]]) && lower.MatchString(text[at[0]:at[0]+1]) ||
				lower.MatchString(text[at[1]:to]) && lower.MatchString(text[at[1]-1:at[1]])
			require.True(t, part, "%s has %q", file, text[max(0, at[0]-20):min(len(text), at[1]+20)])
		}
	}
}

// requireSound compiles only packages that have no other modules below them.
func requireSound(t *testing.T, dir string) {
	t.Helper()
	must(t, dir, "go", "list", "-deps", "-test", "./...")
	must(t, dir, "go", "vet", "./internal/failure", "./internal/contract")
	must(t, dir, "git", "diff", "--exit-code")
	format := filepath.Join(strings.TrimSpace(must(t, dir, "go", "env", "GOROOT")), "bin", "gofmt")
	require.Empty(t, must(t, dir, format, "-l", "api", "cmd", "dev", "internal", "test"))
}

func aTree(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	all := map[string]string{
		"go.mod":                              "module old.example/teams/oldname\n",
		"internal/service/eventing/config.go": "package eventing\n\nconst project = \"oldname\"\n",
		"internal/contract/definitions.go": "package contract\n\nconst (\n\tTopicPrefix = \"\"\n" +
			"\tTypePrefix  = \"example.old.\"\n)\n\nconst TopicUsers = TopicPrefix + \"some.users.v1\"\n",
		"dev/rename.sh": read(t, filepath.Join(root, "dev/rename.sh")),
	}
	maps.Copy(all, files)
	return treeOf(t, all)
}

func TestRename_Forms(t *testing.T) {
	t.Parallel()
	texts := map[string]string{
		"oldname run":                        "my-stall run",
		".oldname/lock":                      ".my-stall/lock",
		"oldname_customer x_oldname":         "my_stall_customer x_my_stall",
		"OLDNAME_TEST_KAFKA, $OLDNAME":       "MY_STALL_TEST_KAFKA, $MY_STALL",
		"Oldname-Service":                    "My-Stall-Service",
		`printf 'x\noldname\tOldname\n'`:     `printf 'x\nmy-stall\tMy-Stall\n'`,
		"/oldname/customer":                  "/my-stall/customer",
		"some.users.v1, handsome.users.v1":   "my-stall.some.users.v1, handsome.users.v1",
		"dlq.a.some.users.v1, some.users.v1": "dlq.a.my-stall.some.users.v1, my-stall.some.users.v1",
		"example.old.customer.x.v1":          "com.github.acme.my_stall.v2.customer.x.v1",
		"oldnames coldname OldnameS":         "oldnames coldname My-StallS",
		"old.example/teams/oldname/x":        "github.com/Acme/My_Stall/v2/x",
		"https://old.example/teams/oldname":  "https://github.com/Acme/My_Stall/v2",
		`-X=old.example/teams/oldname/x.V=1`: `-X=github.com/Acme/My_Stall/v2/x.V=1`,
		`pkg: old.example/teams/oldname/x$`:  `pkg: github.com/Acme/My_Stall/v2/x$`,
		"sub.old.example/teams/oldname":      "sub.old.example/teams/my-stall",
		"old.example/teams/oldname-b":        "old.example/teams/my-stall-b",
	}
	before := strings.Join(slices.Sorted(maps.Keys(texts)), "\n")
	after := ""
	for line := range strings.SplitSeq(before, "\n") {
		after += "\n" + texts[line]
	}
	dir := aTree(t, map[string]string{
		"cmd/oldname/a.md": before,
		"cmd/oldname/oldname_test.go": "package main\n\nfunc oldname() { // oldname's\n" +
			"\t_, xOldname := oldname, \"oldname\"\n\t_ = `oldname` + OldnameX + 'o'\n}\n",
		"logo":    "\x00oldname",
		"LICENSE": "MIT\n\nCopyright (c) 2020 The oldname authors\n\nPermission\n",
	})
	said, err := rename(t, dir, "github.com/Acme/My_Stall/v2")
	require.NoError(t, err, said)
	require.Equal(t, strings.TrimPrefix(after, "\n"), read(t, filepath.Join(dir, "cmd/my-stall/a.md")))
	require.Equal(t, "package main\n\nfunc myStall() { // my-stall's\n"+
		"\t_, xMyStall := myStall, \"my-stall\"\n\t_ = `my-stall` + MyStallX + 'o'\n}\n",
		read(t, filepath.Join(dir, "cmd/my-stall/my_stall_test.go")))
	require.Equal(t, []string{"my-stall."}, find(t, dir, "internal/contract/*.go", `TopicPrefix = "(.*)"`))
	require.Equal(t, []string{"some.users.v1"}, find(t, dir, "internal/contract/*.go", `TopicPrefix \+ "(.*)"`))
	require.Equal(t, "\x00oldname", read(t, filepath.Join(dir, "logo")), "what is no text stays")
	require.Regexp(t, `^MIT\n\nCopyright \(c\) 2020 The oldname authors\n`+
		`Copyright \(c\) 20\d\d The my-stall authors\n\nPermission\n$`, read(t, filepath.Join(dir, "LICENSE")))
	require.NoDirExists(t, filepath.Join(dir, "cmd/oldname"))
	commit(t, dir)
	said, err = rename(t, dir, "github.com/Acme/My_Stall/v2", "my-stall")
	require.NoError(t, err, said)
	require.Empty(t, must(t, dir, "git", "status", "--porcelain"), "there is nothing left to rename")
}

func TestRename_ToANameWithTheOldOne(t *testing.T) {
	t.Parallel()
	dir := aTree(t, map[string]string{"a.md": "old.example/teams/oldname oldname run"})
	said, err := rename(t, dir, "github.com/acme/my-oldname")
	require.NoError(t, err, said)
	require.Equal(t, "github.com/acme/my-oldname my-oldname run", read(t, filepath.Join(dir, "a.md")))
	commit(t, dir)
	said, err = rename(t, dir, "github.com/acme/oldname", "fresh")
	require.NoError(t, err, said)
	require.Equal(t, "github.com/acme/oldname fresh run", read(t, filepath.Join(dir, "a.md")))
}

func TestRename_Refuses(t *testing.T) {
	t.Parallel()
	dir := aTree(t, map[string]string{"cmd/billing/main.go": "package main\n", "a.sql": "-- the Relay\n"})
	refused := func(why string, args ...string) {
		t.Helper()
		said, err := rename(t, dir, args...)
		require.Error(t, err, args)
		require.Contains(t, said, why, args)
		require.Empty(t, must(t, dir, "git", "diff", "HEAD"), args)
	}
	for _, module := range []string{
		"", "/a", "a/b", "github.com", "github.com/", "github.com//b", "https://github.com/a/b", "github.com/a b",
		"GitHub.com/a", "github.com/../b", "./a", "github.com/b.", "github.com/a\n", "github.com/a/v1", "github.com/a;b",
		"github.com/$a",
	} {
		refused("is not a module path", module)
	}
	const module = "github.com/acme/stall"
	for _, name := range []string{
		"Stall", "1stall", "stall_x", "-stall", "stall-", "a--b", "a", "ställ", "a-name-longer-than-it-may-be",
	} {
		refused("is not a name", module, name)
	}
	for _, name := range []string{"billing", "main", "relay", "users", "contract"} {
		refused(`uses the word "`+name+`"`, module, name)
	}
	refused("is not a name", "github.com/acme/v2/v2", "7")
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".oldname"), 0o755))
	refused("run make reset", module)
	require.NoError(t, os.Remove(filepath.Join(dir, ".oldname")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "new.txt"), nil, 0o600))
	refused("commit or stash", module)
}
