// Command rename gives the module another path, everywhere: go run ./internal/tools/rename github.com/you/name
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 2 || os.Args[1] == "" {
		fmt.Fprintln(os.Stderr, "usage: make rename MODULE=github.com/you/name")
		os.Exit(2)
	}
	changed, err := rename(".", os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "rename:", err)
		os.Exit(1)
	}
	fmt.Printf("%d files changed; the module is %s now. Next: make test\n", len(changed), os.Args[1])
}
