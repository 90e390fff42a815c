package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/tools/parts"
)

var upgrades = flag.Bool("clone.upgrade", false, "make a clone and upgrade it, which takes half a minute")

// repository is a tree in git.
type repository struct {
	t   *testing.T
	dir string
}

func (r repository) git(args ...string) string {
	r.t.Helper()
	args = append([]string{"-c", "user.name=t", "-c", "user.email=t@localhost"}, args...)
	out, err := git(r.t.Context(), r.dir, args...)
	require.NoError(r.t, err)
	return out
}

func (r repository) commit() string {
	r.t.Helper()
	if _, err := os.Stat(filepath.Join(r.dir, ".git")); err != nil {
		r.git("init", "-q")
	}
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "x")
	return r.git("rev-parse", "HEAD")
}

func (r repository) read(name string) string {
	r.t.Helper()
	content, err := os.ReadFile(filepath.Join(r.dir, name))
	require.NoError(r.t, err)
	return string(content)
}

// replace replaces in a file a text that stands there once.
func (r repository) replace(name, old, with string) {
	r.t.Helper()
	text := r.read(name)
	require.Equal(r.t, 1, strings.Count(text, old), "%s in %s", old, name)
	require.NoError(r.t, os.WriteFile(filepath.Join(r.dir, name), []byte(strings.Replace(text, old, with, 1)), 0o600))
}

// add puts a declaration at a file's end.
func (r repository) add(name, declaration string) {
	r.t.Helper()
	require.NoError(r.t, os.WriteFile(filepath.Join(r.dir, name), []byte(r.read(name)+"\n"+declaration+"\n"), 0o600))
}

func (r repository) upgrade(from string, dryRun bool) (string, error) {
	r.t.Helper()
	var out bytes.Buffer
	err := upgrade(r.t.Context(), &out, r.dir, from, dryRun)
	return out.String(), err
}

// A clone with a name of its own and without a part takes what a newer tree brings: what the owner has not touched is
// the newer tree's, what only the owner touched stays, and there is a conflict only where both did.
func TestAnUpgrade(t *testing.T) {
	if !*upgrades {
		t.Skip("make test-parts runs it")
	}
	upstream, clone := repository{t, t.TempDir()}, repository{t, t.TempDir()}
	require.NoError(t, thisTree(t).Write(upstream.dir))
	old := upstream.commit()
	var out bytes.Buffer
	o := order{module: "github.com/acme/shop", dir: clone.dir, without: "bench"}
	require.NoError(t, makeClone(t.Context(), &out, upstream.dir, o))
	require.Contains(t, out.String(), "left out  bench")
	clone.commit()
	said, err := clone.upgrade(upstream.dir, false)
	require.NoError(t, err)
	require.Contains(t, said, "already")

	const engine, yours, other = "internal/fault/fault.go", "internal/domain/input.go", "internal/domain/user.go"
	clone.add(yours, "// Owned is the owner's.\nconst Owned = 1")
	clone.replace("README.md", "## What happens to a signup", "## What happens to an order")
	clone.commit()
	upstream.add(engine, "// Newer is the engine's, of "+firstName+".\nconst Newer = 1")
	upstream.add(other, "// Newer is the business's.\nconst Newer = 1")
	upstream.add("bench/main.go", "// Nothing more.")
	newer := upstream.commit()

	head := clone.git("rev-parse", "HEAD")
	said, err = clone.upgrade(upstream.dir, true)
	require.NoError(t, err)
	require.Contains(t, said, "4 files would change",
		"the two, the engine's face, and what says what the tree was made of")
	require.Empty(t, clone.git("status", "--porcelain"), "a dry run leaves everything as it is")

	said, err = clone.upgrade(upstream.dir, false)
	require.NoError(t, err)
	require.Contains(t, said, old[:12])
	require.Equal(t, head, clone.git("rev-parse", "HEAD"), "nothing is committed")
	require.Contains(t, clone.read(engine), "// Newer is the engine's, of shop.\n")
	require.Contains(t, clone.read(other), "const Newer = 1\n")
	require.Contains(t, clone.read(yours), "const Owned = 1\n")
	require.Contains(t, clone.read("README.md"), "## What happens to an order")
	require.NoDirExists(t, filepath.Join(clone.dir, "bench"))
	require.Contains(t, clone.read(originFile), newer)
	goTool(t, clone.dir, "build", "./internal/fault", "./internal/domain")
	_, err = clone.upgrade(upstream.dir, false)
	require.ErrorContains(t, err, "not committed")
	clone.commit()

	upstream.replace(other, "const Newer = 1", "const Newer = 2")
	upstream.add(yours, "// Both have it.\nconst Both = 1")
	newest := upstream.commit()
	upstream.git("tag", "v2", newest)
	upstream.git("checkout", "-q", newer)
	said, err = clone.upgrade(upstream.dir+"#v2", true)
	require.ErrorIs(t, err, errConflicts)
	require.Contains(t, said, "both you and the newer tree changed "+yours)
	said, err = clone.upgrade(upstream.dir+"#v2", false)
	require.ErrorIs(t, err, errConflicts)
	require.Equal(t, 1, strings.Count(said, "both you"), said)
	require.Contains(t, clone.read(yours), "<<<<<<<")
	require.Contains(t, clone.read(other), "const Newer = 2\n")
	clone.git("reset", "-q", "--hard", "HEAD")
	require.Empty(t, clone.git("status", "--porcelain"))
}

func TestAnUpgradeNeedsToKnowWhatItStandsOn(t *testing.T) {
	t.Parallel()
	r := repository{t, t.TempDir()}
	require.NoError(t, textTree("go.mod", "module m.org/a\n").Write(r.dir))
	_, err := r.upgrade("../nowhere", false)
	require.ErrorContains(t, err, originFile, "it is not in git")
	r.commit()
	_, err = r.upgrade("../nowhere", false)
	require.ErrorContains(t, err, originFile)
	require.NoError(t, origin{Commit: "1234", Module: "m.org/a", Name: "a"}.write(parts.Tree{}))
}

// A generated file is never a conflict: it is the newer tree's until it is written anew, and sums add up.
func TestGeneratedFilesAreNoConflict(t *testing.T) {
	t.Parallel()
	r := repository{t, t.TempDir()}
	files := func(sum, face string) {
		require.NoError(t, textTree("go.sum", sum, "engine/api.txt", face).Write(r.dir))
	}
	files("a\nc\n", "old\n")
	base := r.commit()
	files("a\nb2\nc\n", "theirs\n")
	theirs := r.commit()
	r.git("reset", "-q", "--hard", base)
	files("a\nb1\nc\n", "ours\n")
	r.commit()
	changed, conflicts, err := merge(t.Context(), r.dir, theirs)
	require.NoError(t, err)
	require.Empty(t, conflicts)
	require.Equal(t, []string{"engine/api.txt", "go.sum"}, changed)
	require.Equal(t, "a\nb1\nb2\nc\n", r.read("go.sum"))
	require.Equal(t, "theirs\n", r.read("engine/api.txt"))
}

func TestWhatCannotBeMade(t *testing.T) {
	t.Parallel()
	r := repository{t, t.TempDir()}
	require.NoError(t, textTree("go.mod", "module m.org/a\n").Write(r.dir))
	r.commit()
	make := func(o order) error { return makeClone(t.Context(), &bytes.Buffer{}, r.dir, o) }
	require.ErrorContains(t, make(order{module: "m.org/b", without: "bench oops"}),
		`no part "oops"; what can be left out: `+strings.Join(parts.Names(), ", "))
	require.ErrorContains(t, make(order{module: "m.org/b", dir: r.dir}), "not empty")
	require.NoError(t, textTree("new.txt", "").Write(r.dir))
	require.ErrorContains(t, make(order{module: "m.org/b"}), "not committed")
	require.NoFileExists(t, filepath.Join(r.dir, originFile))
}

// In place a tree is made one's own once, and may lose a part later.
func TestInPlace(t *testing.T) {
	t.Parallel()
	r := repository{t, t.TempDir()}
	require.NoError(t, textTree("go.mod", "module "+firstModule+"\n", definitions, "package contract\n",
		"cmd/"+firstName+"/main.go", "package main\n", "bench/a.go", "package main\n", "a.txt", "one\nx # part: bench\n",
		"dev/tools/engineapi/main.go", "package main\n").Write(r.dir))
	commit := r.commit()
	require.NoError(t, makeClone(t.Context(), &bytes.Buffer{}, r.dir, order{module: "github.com/acme/shop"}))
	require.NoDirExists(t, filepath.Join(r.dir, "cmd/"+firstName))
	require.FileExists(t, filepath.Join(r.dir, "cmd/shop/main.go"))
	require.Equal(t, "module github.com/acme/shop\n", r.read("go.mod"))
	r.commit()
	again, made, err := derive(mustRead(t, r.dir), order{module: "github.com/acme/other", without: "bench"})
	require.NoError(t, err)
	require.Equal(t, origin{
		Commit: commit, Module: "github.com/acme/shop", Name: "shop", Without: []string{"bench"},
	}, made)
	require.NotContains(t, again, "bench/a.go")
	require.Equal(t, "one\n", string(again["a.txt"].Content))
}

func mustRead(t *testing.T, dir string) parts.Tree {
	t.Helper()
	tree, err := parts.Read(dir)
	require.NoError(t, err)
	return tree
}
