package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

type completionCommand struct {
	Shell string `arg:"" help:"Of this shell: bash, zsh or fish." enum:"bash,zsh,fish"`
}

func (completionCommand) Help() string {
	return "For this shell alone: source <(twinbox completion bash). For every new one, put that line into ~/.bashrc; " +
		"zsh takes it in ~/.zshrc, and fish takes twinbox completion fish | source.\n\n"
}

// The scripts pass the words of the line, the incomplete one last. Without a candidate, bash and zsh offer files.
var completions = map[string]string{
	"bash": `_twinbox() {
	local IFS=$'\n'
	COMPREPLY=($("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _twinbox twinbox bin/twinbox ./bin/twinbox`,
	"zsh": `#compdef twinbox
_twinbox() {
	local -a found
	found=("${(@f)$("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	if [[ -n "$found" ]]; then compadd -a found; else _files; fi
}
compdef _twinbox twinbox bin/twinbox ./bin/twinbox`,
	"fish": `complete -c twinbox -a '(twinbox complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'`,
}

func (c *completionCommand) Run(to *streams) error {
	to.say("%s", completions[c.Shell])
	return to.broken
}

type completeCommand struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

// Candidates for the last word are commands, flags, values of the flag before it, or names from the services.
func (c *completeCommand) Run(ctx context.Context, command *kong.Context, to *streams, at *Connection) error {
	line := append([]string{"", ""}, c.Words...)
	before, begun := line[len(line)-2], line[len(line)-1]
	node := commandOf(command.Model.Node, c.Words)
	var words []string
	for _, child := range node.Children {
		if !child.Hidden {
			words = append(words, child.Name)
		}
	}
	for _, argument := range node.Positional {
		words = append(words, wordsOf(ctx, at, argument)...)
	}
	for _, flag := range slices.Concat(node.AllFlags(true)...) {
		if name := "--" + flag.Name; strings.HasPrefix(begun, "-") {
			words = append(words, name)
		} else if before == name || before == "-"+string(flag.Short) {
			words = wordsOf(ctx, at, flag.Value)
		}
	}
	slices.Sort(words)
	for _, word := range slices.Compact(words) {
		if word != "" && strings.HasPrefix(word, begun) {
			to.say("%s", word)
		}
	}
	return to.broken
}

// A person waits for the tab.
const completionTimeout = time.Second

// wordsOf returns the values of an enum, and the members of a listing that the tag "names" has.
func wordsOf(ctx context.Context, at *Connection, value *kong.Value) []string {
	words := value.EnumSlice()
	if value.Name == "service" {
		words = append(words, serviceNames...)
	}
	if value.Name == "operation" {
		operations, _ := readOperations()
		for _, operation := range operations {
			words = append(words, operation.text("id"))
		}
	}
	name, member, named := strings.Cut(value.Tag.Get("names"), ": ")
	services, err := at.services()
	if !named || err != nil {
		return words
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	q := questions[name]
	found, _, _ := q.ask(ctx, services, q.example)
	for _, v := range q.views {
		for _, row := range v.table(found).rows {
			words = append(words, row.text(member))
		}
	}
	return words
}
