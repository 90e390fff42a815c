// Command configdoc writes docs/configuration.md from the configuration types, under `make generate`.
package main

import (
	"fmt"
	"os"

	"example.com/twinbox/internal/services"
)

//go:generate env CGO_ENABLED=0 go run . ../../../docs/configuration.md

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: configdoc FILE")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], []byte(page()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "configdoc:", err)
		os.Exit(1)
	}
}

func page() string {
	var programs []program
	for _, s := range services.All() {
		unset := s.Unset()
		programs = append(programs, program{s.Name, unset.Variables(), unset.Rules()})
	}
	return render(programs...)
}
