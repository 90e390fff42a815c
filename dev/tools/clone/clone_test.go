package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/tools/parts"
)

const root = "../../.."

func TestReplace(t *testing.T) {
	t.Parallel()
	for before, after := range map[string]string{
		`module m.org/a`:                        `module new.org/b/c`,
		"import \"m.org/a\"\n":                  "import \"new.org/b/c\"\n",
		`import "m.org/a/internal/x"`:           `import "new.org/b/c/internal/x"`,
		`pkg: m.org/a/internal/x$`:              `pkg: new.org/b/c/internal/x$`,
		`(m.org/a.T).Close`:                     `(new.org/b/c.T).Close`,
		`-X=m.org/a/x.V=1`:                      `-X=new.org/b/c/x.V=1`,
		`m.org/a m.org/a m.org/a`:               `new.org/b/c new.org/b/c new.org/b/c`,
		`https://m.org/a/events/x.json`:         `https://new.org/b/c/events/x.json`,
		`https://x.m.org/a/events/x.json`:       `https://x.m.org/a/events/x.json`,
		`m.org/ab m.org/a-b m.org/a_b xm.org/a`: `m.org/ab m.org/a-b m.org/a_b xm.org/a`,
		`sub.m.org/a mxorg/a`:                   `sub.m.org/a mxorg/a`,
		"m.org/a\x00":                           "m.org/a\x00",
	} {
		require.Equal(t, after, string(replace([]byte(before), "m.org/a", "new.org/b/c")))
	}
}

func TestRename_RefusesWhatIsNoPath(t *testing.T) {
	t.Parallel()
	for _, module := range []string{
		"", "/a", "a/", "a//b", "https://github.com/a/b", "github.com/a b", "GitHub.com/a", "a/../b", "./a", "a/b.", "a\n",
	} {
		_, err := rename(parts.Tree{}, module, "")
		require.ErrorContains(t, err, "not a module path", module)
	}
	_, err := rename(parts.Tree{}, "github.com/a/b", "")
	require.ErrorContains(t, err, "read module")
	_, err = rename(textTree("go.mod", "go 1.26\n"), "new.org/c", "")
	require.ErrorContains(t, err, "no module line")
}

// textTree has files with these names and contents, in turn.
func textTree(files ...string) parts.Tree {
	tree := parts.Tree{}
	for i := 0; i < len(files); i += 2 {
		tree[files[i]] = parts.File{Content: []byte(files[i+1]), Mode: 0o600}
	}
	return tree
}

// Only what holds the path changes, and stays what else it was: a program stays one, and what is no text is left.
func TestRename_ChangesOnlyThePath(t *testing.T) {
	t.Parallel()
	tree := textTree("go.mod", "// about m.org/a\nmodule m.org/a\n\ngo 1.26\n", "README.md", "a\n", "logo", "\x00m.org/a")
	tree["run.sh"] = parts.File{Content: []byte("go run m.org/a/cmd\n"), Mode: 0o755}
	renamed, err := rename(tree, "new.org/b", "")
	require.NoError(t, err)
	want := textTree("go.mod", "// about new.org/b\nmodule new.org/b\n\ngo 1.26\n", "README.md", "a\n",
		"logo", "\x00m.org/a")
	want["run.sh"] = parts.File{Content: []byte("go run new.org/b/cmd\n"), Mode: 0o755}
	require.Equal(t, want, renamed)
}

// The whole tree is renamed. That every import then parses and no old path is left is what a full build would need a
// minute to say; the packages built stand for the rest.
func TestRename_TheTree(t *testing.T) {
	t.Parallel()
	tree := thisTree(t)
	old, err := tree.Module()
	require.NoError(t, err)
	const module = "github.com/acme/shop.v2"
	renamed, err := rename(tree, module, "")
	require.NoError(t, err)
	imports := 0
	for name, file := range renamed {
		if !strings.HasSuffix(name, ".go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, file.Content, parser.ImportsOnly)
		require.NoError(t, err)
		for _, spec := range parsed.Imports {
			require.False(t, strings.HasPrefix(spec.Path.Value, `"`+old), "%s imports %s", name, spec.Path.Value)
			if strings.HasPrefix(spec.Path.Value, `"`+module+"/") {
				imports++
			}
		}
	}
	require.Greater(t, imports, 50)
	dir := t.TempDir()
	require.NoError(t, renamed.Write(dir))
	// Every import of every package and test leads somewhere, and what has no other modules below it compiles.
	goTool(t, dir, "list", "-deps", "-test", "./...", "./dev/...")
	goTool(t, dir, "build", "./internal/domain", "./internal/fault", "./dev/tools/clone")

	again, err := rename(renamed, module, "")
	require.NoError(t, err)
	require.Equal(t, renamed, again, "the second time there is nothing left to do")
}

// TestNames: the forms of a name, and what no name can be.
func TestNames(t *testing.T) {
	t.Parallel()
	tree := textTree(definitions, "const (\n\tTopicUsers = \"customer.users.v1\"\n)\n", "cmd/customer/main.go", "")
	n, err := newNaming(tree, "github.com/Acme/My_Shop/v2", "")
	require.NoError(t, err)
	require.Equal(t, "my-shop", n.name)
	lower, title, upper := firstName, upperFirst(firstName), strings.ToUpper(firstName)
	for before, after := range map[string]string{
		lower + " run":            "my-shop run",
		"." + lower + "/lock":     ".my-shop/lock",
		lower + "_customer":       "my_shop_customer",
		upper + "_TEST_KAFKA":     "MY_SHOP_TEST_KAFKA",
		title + "-Service":        "My-Shop-Service",
		"customer.users.v1":       "my-shop.customer.users.v1",
		"dlq.a.customer.users.v1": "dlq.a.my-shop.customer.users.v1",
		"com.example.customer.x":  "com.github.acme.my_shop.v2.customer.x",
	} {
		require.Equal(t, after, string(n.text([]byte(before))))
	}
	source, err := n.source("a.go",
		[]byte("package a\n\nfunc "+lower+"() { // "+lower+"\n\t"+lower+"()\n\tx"+title+"()\n}\n"))
	require.NoError(t, err)
	require.Equal(t, "package a\n\nfunc myShopCLI() { // my-shop\n\tmyShopCLI()\n\txMyShop()\n}\n", string(source))

	for _, name := range []string{"customer", "Shop", "1shop", "shop_x", "-shop", "a-name-that-is-longer-than-it-may"} {
		_, err := newNaming(tree, "github.com/acme/shop", name)
		require.ErrorContains(t, err, "NAME=", name)
	}
}

// A path that holds the first name is no trap, and a tree that keeps the name changes its path alone.
func TestRename_ToAPathWithTheOldName(t *testing.T) {
	t.Parallel()
	for module, want := range map[string]string{
		"github.com/acme/my-" + firstName: "github.com/acme/my-" + firstName + "/x my-" + firstName + " run",
		"github.com/acme/" + firstName:    "github.com/acme/" + firstName + "/x " + firstName + " run",
	} {
		renamed, err := rename(textTree("go.mod", "module "+firstModule+"\n", definitions, "package contract\n",
			"a.md", firstModule+"/x "+firstName+" run"), module, "")
		require.NoError(t, err)
		require.Equal(t, want, string(renamed["a.md"].Content))
	}
}

// Two projects made from this tree share nothing on one machine, one broker or one database server: no container,
// network, volume or image, no role or database, no topic, group, source or type of event, no variable, no folder.
func TestTwoProjectsShareNothing(t *testing.T) {
	t.Parallel()
	one, other := cloneOf(t, "github.com/acme/shop"), cloneOf(t, "gitlab.com/other/my-mart")
	first := resources(t, one)
	require.Contains(t, first, "volume shop_postgres")
	require.Contains(t, first, "image shop/customer:local")
	require.Contains(t, first, "role shop_customer")
	require.Contains(t, first, "topic shop.customer.users.v1")
	require.Contains(t, first, "topic shop.order.timers.v1") // part: examples
	require.Contains(t, first, "group shop.")
	require.Contains(t, first, "source /shop/customer")
	require.Contains(t, first, "type com.github.acme.shop.customer.user-registered.v1")
	second := resources(t, other)
	require.Len(t, second, len(first))
	for resource := range first {
		require.NotContains(t, second, resource)
	}
	for _, dir := range []string{one, other} {
		requireGone(t, dir)
	}
	// The tests that compare pages, contracts and containers with the code hold for a derived project as well.
	goTool(t, other, "test", "./api", "./test/deploy", "./internal/contract", "./test/tree",
		"-run", "Requests|Operations|Definition|Compose|Dockerfile|InitSQL|Links|Commands")
}

func thisTree(t *testing.T) parts.Tree {
	t.Helper()
	tree, err := parts.Read(root)
	require.NoError(t, err)
	return tree
}

func cloneOf(t *testing.T, module string) string {
	t.Helper()
	clone, _, err := derive(thisTree(t), order{module: module})
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, clone.Write(dir))
	return dir
}

// resources lists what a project uses beside its own folder.
func resources(t *testing.T, dir string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	file := filepath.Join(dir, "docker-compose.yml")
	options, err := cli.NewProjectOptions([]string{file}, cli.WithProfiles([]string{"*"}))
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
	for _, source := range []struct{ kind, file, pattern string }{
		{"role", "deploy/postgres/init.sql", `create role (\S+)`},
		{"database", "deploy/postgres/init.sql", `create database (\S+)`},
		{"topic", "internal/contract/definitions.go", `Topic\w+ += "([^"]+)"`},
		{"topic", "examples/order/contract/contract.go", `Topic\w+ += "([^"]+)"`},   // part: examples
		{"topic", "examples/ledger/contract/contract.go", `Topic\w+ += "([^"]+)"`},  // part: examples
		{"source", "examples/order/contract/contract.go", `Source\w+ += "([^"]+)"`}, // part: examples
		{"schema", "examples/order/contract/contract.go", `DataSchema: +"([^"]+)"`}, // part: examples
		{"source", "internal/contract/definitions.go", `Source\w+ += "([^"]+)"`},
		{"schema", "internal/contract/definitions.go", `DataSchema: +"([^"]+)"`},
		{"type", "api/asyncapi.yaml", `(?m)^ +name: (\w+\.\S+\.v\d+)$`},
		{"group", "internal/service/eventing/config.go", `project = "([^"]+)"`},
		{"state", ".gitignore", `(?m)^/(\.\w\S*)/$`},
		{"variables", "cmd/" + project.Name + "/main.go", `DefaultEnvars\("(\w+)"\)`}, // part: ops
		{"cache", "dev/local/postgres/binaries/fetch.go", `Join\(dir, "([^"]+)"\)`},
		{"temporary", "dev/local/postgres/socket.go", `socketPrefix = "([^"]+)"`},
		{"problems", "internal/web/problem.go", `typeBase = "([^"]+)"`},
	} {
		content, err := os.ReadFile(filepath.Join(dir, source.file))
		require.NoError(t, err)
		matches := regexp.MustCompile(source.pattern).FindAllSubmatch(content, -1)
		require.NotEmpty(t, matches, "%s in %s", source.kind, source.file)
		for _, match := range matches {
			name := string(match[1])
			if source.kind == "group" {
				name += "."
			}
			found[source.kind+" "+name] = true
		}
	}
	return found
}

// requireGone finds the first name nowhere: neither in a path nor in a file, in no case.
func requireGone(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		require.NotContains(t, strings.TrimPrefix(path, dir), firstName)
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NotContains(t, strings.ToLower(string(content)), firstName, path)
		return nil
	}))
}

func goTool(t *testing.T, dir string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", args...)
	// As the copies of the tree are built elsewhere: what is compiled for one serves all.
	command.Dir, command.Env = dir, append(os.Environ(), "GOFLAGS=-trimpath", "CGO_ENABLED=0")
	output, err := command.CombinedOutput()
	require.NoError(t, err, string(output))
}
