// Command rename makes the tree one's own: go run ./dev/tools/rename github.com/you/name [NAME]
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) < 2 || len(os.Args) > 3 || os.Args[1] == "" {
		fmt.Fprintln(os.Stderr, "usage: make rename MODULE=github.com/you/name [NAME=name]")
		os.Exit(2)
	}
	name := ""
	if len(os.Args) == 3 {
		name = os.Args[2]
	}
	changed, err := rename(".", os.Args[1], name)
	if err != nil {
		fmt.Fprintln(os.Stderr, "rename:", err)
		os.Exit(1)
	}
	fmt.Printf("%d files changed; the module is %s now. Next: make generate test\n", len(changed), os.Args[1])
}
