// Command models visits every state of the outbox's relay, its topic and a consumer within small bounds, while the
// broker loses records and databases go back. README.md describes the models; -list lists the runs.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"time"
)

func main() {
	pattern := flag.String("run", "*", "names of `runs`, as a shell pattern")
	list := flag.Bool("list", false, "list the runs")
	states := flag.Bool("states", false, "print the state after each step of a trace")
	flag.Parse()
	if err := printRuns(os.Stdout, *pattern, *list, *states); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// printRuns fails if a run has another outcome than its table has.
func printRuns(w io.Writer, pattern string, list, states bool) error {
	var failed error
	for _, r := range allRuns() {
		if matches, err := path.Match(pattern, r.name); err != nil {
			return err
		} else if !matches {
			continue
		}
		if list {
			fmt.Fprintf(w, "%-20s %10d states  %s\n", r.name, r.states, r.note)
			continue
		}
		began := time.Now()
		found := r.explore()
		fmt.Fprintf(w, "%s: %s (%.1f s)\n", r.name, r.note, time.Since(began).Seconds())
		found.print(w, states)
		if found.states != r.states || found.broken != r.broken {
			failed = errors.Join(failed, fmt.Errorf("%s: expected %d states, %q", r.name, r.states, r.broken))
		}
	}
	return failed
}

func (found *result) print(w io.Writer, states bool) {
	if found.broken == "" {
		fmt.Fprintf(w, "  holds in %d states\n", found.states)
		return
	}
	fmt.Fprintf(w, "  BROKEN after %d states: %s\n", found.states, found.broken)
	for i, s := range found.trace {
		fmt.Fprintf(w, "  %2d. %s\n", i+1, s.what)
		if states || i == len(found.trace)-1 {
			fmt.Fprintf(w, "      %s\n", s.state)
		}
	}
}
