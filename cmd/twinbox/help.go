package main

import (
	_ "embed"
	"strings"

	"github.com/alecthomas/kong"
)

// exampleLines are command lines, each an example of the command that it runs. A test parses them.
//
//go:embed examples.txt
var exampleLines string

// withExamples ends the help of each command with its examples.
func withExamples(parser *kong.Kong) error {
	for line := range strings.Lines(exampleLines) {
		command := parser.Model.Node
		for _, word := range strings.Fields(line)[1:] {
			child := childOf(command, word)
			if child == nil {
				break
			}
			command = child
		}
		if !strings.Contains(command.Detail, exampleHeading) {
			command.Detail += exampleHeading
		}
		command.Detail += "  " + line
	}
	for _, command := range parser.Model.Leaves(true) {
		command.Detail += "\n" + exitCodes
	}
	return nil
}

const (
	exampleHeading = "Examples:\n\n"
	exitCodes      = "Exit codes: 0 done, 1 failed, 2 usage, 3 not found, 4 refused, 5 partly done."
)

// Help is shown behind the command's own line.
func (CompletionCommand) Help() string {
	return "For this shell alone: source <(twinbox completion bash). For every new one, put that line into ~/.bashrc; " +
		"zsh takes it in ~/.zshrc, and fish takes twinbox completion fish | source.\n\n"
}
