package parts

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../../.."

func thisTree(t *testing.T) Tree {
	t.Helper()
	tree, err := Read(root)
	require.NoError(t, err)
	return tree
}

// thereIn are the parts that the tree has: a clone says in .origin.json which it was made without.
func thereIn(tree Tree) []Part {
	return slices.DeleteFunc(slices.Clone(All), func(p Part) bool {
		return strings.Contains(string(tree[".origin.json"].Content), `"`+p.Name+`"`)
	})
}

func texts(files ...string) Tree {
	tree := Tree{}
	for i := 0; i < len(files); i += 2 {
		tree[files[i]] = File{Content: []byte(files[i+1]), Mode: 0o600}
	}
	return tree
}

func without(t *testing.T, tree Tree, names string) Tree {
	t.Helper()
	gone, err := Parse(names)
	require.NoError(t, err)
	left, err := tree.Without(gone...)
	require.NoError(t, err)
	return left
}

// Every path of a part is there, no file is of two parts, and the page names each part as the table does.
func TestTheTableIsThatOfThisTree(t *testing.T) {
	t.Parallel()
	tree := thisTree(t)
	of := map[string]string{}
	for _, p := range thereIn(tree) {
		for _, path := range p.Paths {
			wentBefore := slices.ContainsFunc(All, func(other Part) bool { // with a part of which it is one as well
				return other.Name != p.Name && other.holds(path) && !tree.exists(strings.TrimSuffix(other.Paths[0], "/"))
			})
			require.True(t, wentBefore || tree.exists(strings.TrimSuffix(path, "/")), "%s: %s", p.Name, path)
		}
		for name := range tree {
			if p.holds(name) {
				if of[name] != "" { // a part may be one of another's examples, and goes with either
					require.Equal(t, "examples", of[name], "%s is of %s too", name, p.Name)
				}
				of[name] = p.Name
			}
		}
	}
	var named []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z]+)` \\| (.+) \\|$").
		FindAllStringSubmatch(string(tree["docs/upgrading.md"].Content), -1) {
		at := slices.IndexFunc(All, func(p Part) bool { return p.Name == row[1] })
		require.GreaterOrEqual(t, at, 0, row[1])
		require.Equal(t, All[at].What, row[2])
		named = append(named, row[1])
	}
	require.Equal(t, Names(), named)
}

// What is left of the tree without all the parts has every package that it imports, in the product as in its tests.
// That it also compiles and works, and what is left without each part, is what make test-parts says.
func TestNothingImportsWhatIsGone(t *testing.T) {
	t.Parallel()
	tree := thisTree(t)
	module, err := tree.Module()
	require.NoError(t, err)
	var there []string
	for _, p := range thereIn(tree) {
		there = append(there, p.Name)
	}
	left := without(t, tree, strings.Join(there, " "))
	require.True(t, len(there) == 0 || len(left) < len(tree))
	dir := t.TempDir()
	require.NoError(t, left.Write(dir))
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-test", "-tags", "faults",
		"-f", "{{with .Error}}{{.}}{{end}}", module+"/...")
	list.Dir = dir
	output, err := list.CombinedOutput()
	require.NoError(t, err, "%s", output)
	require.Empty(t, strings.TrimSpace(string(output)))
}

// What two parts have in common goes with the last of them, also where the other one went before.
func TestWhatTwoPartsShare(t *testing.T) {
	t.Parallel()
	tree := thisTree(t)
	for _, j := range joint {
		for _, path := range j.Paths {
			require.Equal(t, len(tree.withJoint(nil)) == 0, tree.exists(strings.TrimSuffix(path, "/")), path)
		}
	}
	shared := texts("go.mod", "module m.org/a\n", "internal/ops/a.txt", "a\n", "internal/kafka/producer/b.txt", "b\n",
		"internal/kafka/progress/c.txt", "c\n", "x.txt", "x\ny // part: standing\n")
	withoutOps := without(t, shared, "ops")
	require.Contains(t, withoutOps, "internal/kafka/progress/c.txt")
	require.Contains(t, without(t, shared, "batch"), "internal/kafka/progress/c.txt")
	for _, left := range []Tree{without(t, withoutOps, "batch"), without(t, shared, "batch ops")} {
		require.NotContains(t, left, "internal/kafka/progress/c.txt")
		require.Equal(t, "x\n", string(left["x.txt"].Content))
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	found, err := Parse(" bench,ops  bench")
	require.NoError(t, err)
	require.Len(t, found, 2)
	found, err = Parse("batch")
	require.NoError(t, err)
	require.Equal(t, []string{"batch", "bench"}, []string{found[0].Name, found[1].Name}, "it measures the two edges")
	none, err := Parse("")
	require.NoError(t, err)
	require.Empty(t, none)
	_, err = Parse("Ops")
	require.EqualError(t, err, `there is no part "Ops"; what can be left out: `+strings.Join(Names(), ", "))
}

func TestMarks(t *testing.T) {
	t.Parallel()
	const text = "a\nb // part: ops\nc # part: bench\n  # part: ops, begin\nd\n  # part: ops, end\n" +
		"| e | <!-- part: ops -->\n{ // part: ops, begin\nf # part: bench\n} // part: ops, end\ng part: ops\n"
	for names, want := range map[string]string{
		"ops":       "a\nc # part: bench\ng part: ops\n",
		"ops bench": "a\ng part: ops\n",
		"bench": "a\nb // part: ops\n  # part: ops, begin\nd\n  # part: ops, end\n| e | <!-- part: ops -->\n" +
			"{ // part: ops, begin\n} // part: ops, end\ng part: ops\n",
	} {
		left := without(t, texts("go.mod", "module m.org/a\n", "x.txt", text), names)
		require.Equal(t, want, string(left["x.txt"].Content), names)
	}
	nested := texts("go.mod", "module m.org/a\n", "x.txt",
		"a\n# part: ops, begin\nb\n# part: bench, begin\nc\n# part: bench, end\nd\n# part: ops, end\ne\n")
	require.Equal(t, "a\ne\n", string(without(t, nested, "ops bench")["x.txt"].Content))
	require.Equal(t, "a\ne\n", string(without(t, nested, "ops")["x.txt"].Content))
	require.Equal(t, "a\n# part: ops, begin\nb\nd\n# part: ops, end\ne\n",
		string(without(t, nested, "bench")["x.txt"].Content))
	gone, err := Parse("ops")
	require.NoError(t, err)
	for text, want := range map[string]string{
		"a # part: opps\n":                           `x.txt: a line has the mark of a part "opps", which there is not`,
		"# part: ops, begin\na\n":                    "x.txt: part ops does not end",
		"# part: ops, end\n":                         "x.txt: part ops ends where it has not begun",
		"# part: ops, begin\n# part: bench, end\n":   "x.txt: part ops does not end",
		"# part: ops, begin\n# part: ops, begin\n\n": "x.txt: part ops does not end",
	} {
		_, err := texts("go.mod", "module m.org/a\n", "x.txt", text).Without(gone...)
		require.EqualError(t, err, want)
	}
}

// What follows from the absence of a part goes with it.
func TestWhatFollows(t *testing.T) {
	t.Parallel()
	tree := texts(
		"go.mod", "module m.org/a\n", "go.work", "use (\n\t.\n\t./bench\n)\n", "bench/go.mod", "module m.org/a/bench\n",
		"bench/b.go", "package bench\n", "bench/sub/b.go", "package sub\n",
		"a/a.go", "package a\n\nimport (\n\t\"fmt\"\n\t\"os\"\n\n\tx \"m.org/a/bench\"\n\t\"m.org/b/v2\"\n)\n\n"+
			"func A() { fmt.Println(os.Args, b.C) }\nvar _ = x.B // part: bench\nvar _ = 1\n",
		"a/a_test.go", "package a\n\nimport \"m.org/a/bench/sub\"\n",
		"a/b_test.go", "package a\n\nfunc TestKept(t *testing.T) {}\n",
		"bench/b_test.go", "package bench\n\nfunc TestGone(t *testing.T) {}\n",
		"a/c/c.go", "package c\n\nimport \"m.org/a/bench\"\n", "a/d.go", "package a\n\nimport \"m.org/a/a/c\"\n",
		"a/e.go", "package a\n\n//go:embed a.go bench.txt *.x\nvar Files int\n",
		"docs/p.md", "[b](../bench/b.go), [c](../bench#x), [a](../a/a.go), [n](nowhere.md), [u](https://bench)\n"+
			"| x | `TestGone`, `TestKept` |\n| `TestNever` | `TestGone` |\n",
		"ENGINE.md", "# E\n\n## a\nText.\n\n| one | `TestGone`, `TestKept` |\n| two | `TestGone` |\n"+
			"\n## bench\n| x | `TestGone` |\n",
	)
	left := without(t, tree, "bench")
	want := texts(
		"go.mod", "module m.org/a\n", "go.work", "use (\n\t.\n)\n",
		"a/a.go", "package a\n\nimport (\n\t\"fmt\"\n\t\"os\"\n\n\t\"m.org/b/v2\"\n)\n\n"+
			"func A() { fmt.Println(os.Args, b.C) }\nvar _ = 1\n",
		"a/b_test.go", "package a\n\nfunc TestKept(t *testing.T) {}\n",
		"a/e.go", "package a\n\n//go:embed a.go *.x\nvar Files int\n",
		"docs/p.md", "b, c, [a](../a/a.go), [n](nowhere.md), [u](https://bench)\n"+
			"| x | `TestKept` |\n| `TestNever` |  |\n",
		"ENGINE.md", "# E\n\n## a\nText.\n\n| one | `TestKept` |\n\n",
	)
	for name := range want {
		require.Equal(t, string(want[name].Content), string(left[name].Content), name)
	}
	require.Len(t, left, len(want))
	require.Contains(t, tree, "bench/b.go", "the tree itself stays")
}
