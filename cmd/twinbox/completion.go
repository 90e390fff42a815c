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

// Help is shown behind the command's own line.
func (CompletionCommand) Help() string {
	return "For this shell alone: source <(twinbox completion bash). For every new one, put that line into ~/.bashrc; " +
		"zsh takes it in ~/.zshrc, and fish takes twinbox completion fish | source.\n\n"
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
func (c *CompletionCommand) Run(to *streams) error {
	to.say("%s", completions[c.Shell])
	return nil
}

// CompleteCommand is "twinbox complete", which the shells' parts call.
type CompleteCommand struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

// Run writes what may stand in the place of the last word: commands, flags, or the values of the flag before it.
func (c *CompleteCommand) Run(command *kong.Context, to *streams) error {
	begun := c.Words[len(c.Words)-1]
	node := commandOf(command.Model.Node, c.Words)
	var words []string
	for _, child := range node.Children {
		if !child.Hidden {
			words = append(words, child.Name)
		}
	}
	for _, argument := range node.Positional {
		words = append(words, argument.EnumSlice()...)
	}
	for _, flag := range slices.Concat(node.AllFlags(true)...) {
		if name := "--" + flag.Name; strings.HasPrefix(begun, "-") {
			words = append(words, name)
		} else if before := c.Words[max(0, len(c.Words)-2)]; before == name || before == "-"+string(flag.Short) {
			words = flag.EnumSlice()
		}
	}
	slices.Sort(words)
	for _, word := range slices.Compact(words) {
		if word != "" && strings.HasPrefix(word, begun) {
			to.say("%s", word)
		}
	}
	return nil
}
