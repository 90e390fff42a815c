package main

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// CompletionCommand is "twinbox completion".
type CompletionCommand struct {
	Shell string `arg:"" help:"Of this shell: bash, zsh or fish." enum:"bash,zsh,fish"`
}

// What a shell runs at each tab: it hands the words of the line over, the one that is begun last, and takes the lines
// that come back for what may stand there. Where none comes back, it offers files.
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

// Run writes the shell's part.
func (c *CompletionCommand) Run(to streams) error { return to.say("%s", completions[c.Shell]) }

// CompleteCommand is "twinbox complete", which the shells' parts call.
type CompleteCommand struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

// Run writes what may stand in the place of the last word.
func (c *CompleteCommand) Run(command *kong.Context, to streams) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	for _, word := range candidates(command.Model.Node, words) {
		if err := to.say("%s", word); err != nil {
			return err
		}
	}
	return nil
}

// candidates are the commands, the flags or the values of a flag that begin as the last word does.
func candidates(node *kong.Node, words []string) (found []string) {
	if len(words) == 0 {
		words = []string{""}
	}
	begun, before := words[len(words)-1], words[:len(words)-1]
	var open *kong.Flag // that waits for its value
	for _, word := range before {
		switch flag := flagOf(node, word); {
		case open != nil:
			open = nil
		case flag != nil && !flag.IsBool() && !strings.Contains(word, "="):
			open = flag
		case flag == nil:
			if child := childOf(node, word); child != nil {
				node = child
			}
		}
	}
	offer := func(word string, hidden bool) {
		if !hidden && strings.HasPrefix(word, begun) {
			found = append(found, word)
		}
	}
	switch {
	case open != nil && open.Name == "service":
		for _, value := range serviceNames {
			offer(value, false)
		}
	case open != nil:
		for _, value := range open.EnumSlice() {
			offer(value, value == "")
		}
	case strings.HasPrefix(begun, "-"):
		for _, flags := range node.AllFlags(true) {
			for _, flag := range flags {
				offer("--"+flag.Name, flag.Hidden)
			}
		}
	default:
		for _, child := range node.Children {
			offer(child.Name, child.Hidden)
		}
		if len(node.Positional) > 0 && node.Positional[0].Enum != "" {
			for _, value := range node.Positional[0].EnumSlice() {
				offer(value, false)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func flagOf(node *kong.Node, word string) *kong.Flag {
	name, _, _ := strings.Cut(word, "=")
	for _, flags := range node.AllFlags(true) {
		for _, flag := range flags {
			if name == "--"+flag.Name || flag.Short != 0 && name == "-"+string(flag.Short) {
				return flag
			}
		}
	}
	return nil
}

func childOf(node *kong.Node, word string) *kong.Node {
	for _, child := range node.Children {
		if child.Name == word || slices.Contains(child.Aliases, word) {
			return child
		}
	}
	return nil
}
