package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"example.com/twinbox/dev/tools/parts"
)

// errConflicts ends an upgrade that has left something to decide.
var errConflicts = errors.New("there are conflicts")

// upgrade merges a newer tree into the clone at root. Both that tree and the one that the clone was made of are turned
// into the clone's shape, each by its own tool: same module, same names, without the same parts. What is between the
// two is what the newer tree brings, and git merges it in three ways, as it merges a branch. So files that the owner
// has not touched become the newer tree's, those that only the owner touched stay, and there is a conflict where both
// did.
//
// It leaves the merge in the folder and in git's index and commits nothing. A dry run leaves everything as it is.
func upgrade(ctx context.Context, out io.Writer, root, from string, dryRun bool) (err error) {
	head, err := cleanCommit(ctx, root)
	if err != nil {
		return err
	}
	tree, err := parts.Read(root)
	if err != nil {
		return err
	}
	made, known, err := originOf(tree)
	if err != nil {
		return err
	}
	if head == "" || !known || made.Commit == "" {
		return fmt.Errorf("nothing says what this tree was made of: make new writes %s, in git", originFile)
	}
	work, err := os.MkdirTemp("", "upgrade-")
	if err != nil {
		return fmt.Errorf("upgrade: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	upstream, newer, err := findUpstream(ctx, root, from, work)
	if err != nil {
		return err
	}
	if newer == made.Commit {
		_, err := fmt.Fprintf(out, "The tree is at %.12s already.\n", newer)
		return err
	}
	module, err := tree.Module()
	if err != nil {
		return err
	}
	s := shaper{work: work, root: root, upstream: upstream, made: made, module: module}
	base, err := s.commit(ctx, made.Commit, "")
	if err != nil {
		return fmt.Errorf("shape the tree that this one was made of: %w", err)
	}
	theirs, err := s.commit(ctx, newer, base)
	if err != nil {
		return fmt.Errorf("shape the newer tree: %w", err)
	}
	into := root
	if dryRun {
		into = filepath.Join(work, "trial")
		if _, err := git(ctx, root, "worktree", "add", "-q", "--detach", into, head); err != nil {
			return err
		}
		defer func() {
			_, removed := git(ctx, root, "worktree", "remove", "--force", into)
			err = errors.Join(err, removed)
		}()
	}
	changed, conflicts, err := merge(ctx, into, theirs)
	if err != nil {
		return err
	}
	return tellUpgrade(out, made.Commit, newer, changed, conflicts, dryRun)
}

// findUpstream finds the newer tree's commit, and the repository that has it. What is asked for is a folder, or a tag,
// branch or commit that the clone's own repository knows, or an address to fetch from; "#" before a tag, branch or
// commit says which one of a folder or an address is meant.
func findUpstream(ctx context.Context, root, from, work string) (repository, commit string, err error) {
	if commit, err := git(ctx, root, "rev-parse", "--verify", "-q", from+"^{commit}"); err == nil {
		repository, err = filepath.Abs(root)
		return repository, commit, err
	}
	repository, ref, _ := strings.Cut(from, "#")
	if info, err := os.Stat(repository); err == nil && info.IsDir() {
		if repository, err = filepath.Abs(repository); err != nil {
			return "", "", fmt.Errorf("find %s: %w", from, err)
		}
	} else {
		address := repository
		repository = filepath.Join(work, "fetched")
		if _, err := git(ctx, work, "clone", "-q", "--bare", address, repository); err != nil {
			return "", "", fmt.Errorf("%s is no folder, and no commit or tag here: %w", from, err)
		}
	}
	commit, err = git(ctx, repository, "rev-parse", "--verify", cmp.Or(ref, "HEAD")+"^{commit}")
	return repository, commit, err
}

// shaper turns commits of the upstream into trees as the clone would have been made of them.
type shaper struct {
	work, root, upstream string
	made                 origin
	module               string // that the clone has now
}

// commit shapes one and puts it into the clone's repository, behind the parent. Nothing refers to it but the merge.
func (s shaper) commit(ctx context.Context, commit, parent string) (string, error) {
	source, shaped := filepath.Join(s.work, commit), filepath.Join(s.work, commit+"-shaped")
	if _, err := git(ctx, s.work, "clone", "-q", "--shared", "--no-checkout", s.upstream, source); err != nil {
		return "", err
	}
	if _, err := git(ctx, source, "checkout", "-q", "--detach", commit); err != nil {
		return "", err
	}
	tool := func(dir, module string, more ...string) error {
		args := append([]string{"run", "-trimpath", "./dev/tools/clone", "new", "-module", module}, more...)
		_, err := run(ctx, dir, nil, "go", args...)
		return err
	}
	err := tool(source, s.made.Module, "-name", s.made.Name, "-dir", shaped, "-commit", commit,
		"-without", strings.Join(s.made.Without, " "))
	if err == nil && s.module != s.made.Module {
		err = tool(shaped, s.module, "-commit", commit)
	}
	if err != nil {
		return "", err
	}
	directory, err := git(ctx, s.root, "rev-parse", "--absolute-git-dir")
	if err != nil {
		return "", err
	}
	environ := []string{
		"GIT_DIR=" + directory, "GIT_WORK_TREE=" + shaped, "GIT_INDEX_FILE=" + shaped + ".index",
		"GIT_AUTHOR_NAME=upgrade", "GIT_AUTHOR_EMAIL=upgrade@localhost",
		"GIT_COMMITTER_NAME=upgrade", "GIT_COMMITTER_EMAIL=upgrade@localhost",
	}
	if _, err := run(ctx, shaped, environ, "git", "add", "-A", "-f", "."); err != nil {
		return "", err
	}
	tree, err := run(ctx, shaped, environ, "git", "write-tree")
	if err != nil {
		return "", err
	}
	args := []string{"commit-tree", "-m", "Upstream at " + commit, tree}
	if parent != "" {
		args = append(args, "-p", parent)
	}
	return run(ctx, shaped, environ, "git", args...)
}

// merge merges what a commit changes into the tree at dir. What is generated is no conflict: it is written anew.
func merge(ctx context.Context, dir, commit string) (changed, conflicts []string, err error) {
	_, failed := git(ctx, dir, "cherry-pick", "--no-commit", commit)
	unmerged, err := git(ctx, dir, "diff", "--name-only", "--diff-filter=U")
	if err != nil {
		return nil, nil, err
	}
	if failed != nil && unmerged == "" {
		return nil, nil, failed
	}
	for name := range strings.Lines(unmerged) {
		name = strings.TrimSpace(name)
		if settled, err := settleGenerated(ctx, dir, name); err != nil {
			return nil, nil, err
		} else if !settled {
			conflicts = append(conflicts, name)
		}
	}
	listed, err := git(ctx, dir, "diff", "--name-only", "HEAD")
	if err != nil {
		return nil, nil, err
	}
	return strings.Fields(listed), conflicts, nil
}

// settleGenerated takes the newer tree's version of a generated file, and of a file of sums all that either has.
func settleGenerated(ctx context.Context, dir, name string) (settled bool, err error) {
	sums := path.Ext(name) == ".sum"
	if !sums && !strings.Contains(path.Base(name), ".gen.") &&
		!slices.Contains([]string{"docs/configuration.md", "engine/api.txt"}, name) {
		return false, nil
	}
	ours, oursErr := git(ctx, dir, "show", ":2:"+name)
	theirs, theirsErr := git(ctx, dir, "show", ":3:"+name)
	if oursErr != nil || theirsErr != nil { // one of the two has removed it
		return false, nil
	}
	if sums {
		lines := slices.Concat(strings.Split(ours, "\n"), strings.Split(theirs, "\n"))
		slices.Sort(lines)
		theirs = strings.Join(slices.Compact(lines), "\n")
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(theirs+"\n"), 0o644); err != nil {
		return false, fmt.Errorf("settle %s: %w", name, err)
	}
	_, err = git(ctx, dir, "add", name)
	return true, err
}

func tellUpgrade(out io.Writer, old, newer string, changed, conflicts []string, dryRun bool) error {
	var text strings.Builder
	verb := "changed"
	if dryRun {
		verb = "would change"
	}
	fmt.Fprintf(&text, "From %.12s to %.12s: %d files %s.\n", old, newer, len(changed), verb)
	for _, name := range conflicts {
		fmt.Fprintf(&text, "  both you and the newer tree changed %s\n", name)
	}
	switch {
	case dryRun:
	case len(conflicts) > 0:
		text.WriteString("Next: edit them, git add, make generate test, git commit; " +
			"git reset --hard HEAD takes it all back\n")
	default:
		text.WriteString("Next: make generate test, git commit; git reset --hard HEAD takes it all back\n")
	}
	if _, err := io.WriteString(out, text.String()); err != nil {
		return err
	}
	if len(conflicts) > 0 {
		return fmt.Errorf("%w: %d", errConflicts, len(conflicts))
	}
	return nil
}
