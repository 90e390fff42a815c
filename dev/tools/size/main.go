// Command size prints how large the tree is, ring by ring, and what one signup runs, each beside its goal. It is run in
// the root: go run ./dev/tools/size [-quick]
//
// Lines are those of Go files that are neither tests nor generated, without blank ones and comments. What a signup runs
// is what a build with coverage counts from a request until its mail has come, in each of ten signups: what a chore in
// the background runs in some of them is left out.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"example.com/twinbox/dev/tools/parts"
)

func main() {
	quick := flag.Bool("quick", false, "leave out what one signup runs, which takes a build with coverage")
	flag.Parse()
	if err := report(context.Background(), os.Stdout, ".", *quick); err != nil {
		fmt.Fprintln(os.Stderr, "size:", err)
		os.Exit(1)
	}
}

// figure is one line of the answer.
type figure struct {
	name   string
	value  int
	goal   int // 0: none
	remark string
}

func report(ctx context.Context, out io.Writer, root string, quick bool) error {
	sources, err := parts.Read(root)
	if err != nil {
		return err
	}
	figures, err := sizes(sources)
	if err != nil {
		return err
	}
	onItsWay, err := formsIn(sources)
	if err != nil {
		return err
	}
	linked, err := linkedIn(ctx, root, sources)
	if err != nil {
		return err
	}
	figures = append(figures, onItsWay, linked)
	if !quick {
		signup, err := oneSignup(ctx, root)
		if err != nil {
			return err
		}
		figures = append(figures, signup...)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "WHAT\tIS\tGOAL\t")
	for _, f := range figures {
		goal := ""
		if f.goal > 0 {
			goal = fmt.Sprintf("<= %d", f.goal)
			if f.value > f.goal {
				goal += " (missed)"
			}
		}
		_, _ = fmt.Fprintf(table, "%s\t%d\t%s\t%s\n", f.name, f.value, goal, f.remark)
	}
	return table.Flush()
}

// sizes are the figures that the files alone tell.
func sizes(sources parts.Tree) ([]figure, error) {
	source, err := measure(sources)
	if err != nil {
		return nil, err
	}
	least, err := sources.Without(parts.All...)
	if err != nil {
		return nil, err
	}
	smallest, err := measure(least)
	if err != nil {
		return nil, err
	}
	largest, methods := source.largestType()
	var figures []figure
	for _, r := range rings {
		lines := source.lines(func(of ring) bool { return of.name == r.name })
		figures = append(figures, figure{name: "lines of " + r.name, value: lines, goal: r.goal})
	}
	return append(figures,
		figure{name: "lines of the product", value: source.lines(isProduct), goal: 24_000},
		figure{
			name: "lines of the smallest clone", value: smallest.lines(isProduct), goal: 14_000,
			remark: "without " + strings.Join(parts.Names(), ", "),
		},
		figure{name: "methods of the largest type", value: methods, goal: 25, remark: largest},
		figure{
			name: "direct requirements of the product", value: requirements(sources["go.mod"].Content), goal: 20,
			remark: "without this project's own modules",
		},
	), nil
}
