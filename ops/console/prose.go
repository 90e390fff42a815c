package console

import (
	"regexp"
	"strings"
)

// block is a paragraph or an entry of a list.
type block struct {
	Entry bool
	Spans []span
}

// span is a run of text: plain, code, bold, or a link.
type span struct {
	Text, Link string
	Code, Bold bool
}

var marked = regexp.MustCompile("`[^`]+`|\\*\\*[^*]+\\*\\*|\\[[^\\]]+\\]\\(https?://[^)\\s]+\\)")

// blocks reads as much of Markdown as descriptions are written in: paragraphs, lists, code, bold, links. What else
// there is stays as it was written.
func blocks(text string) (all []block) {
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		var lines []string // of one block
		end := func() {
			if len(lines) > 0 {
				text, isEntry := strings.CutPrefix(strings.Join(lines, " "), "- ")
				all = append(all, block{Entry: isEntry, Spans: spans(text)})
			}
			lines = nil
		}
		for line := range strings.Lines(paragraph) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "- ") {
				end()
			}
			if line != "" {
				lines = append(lines, line)
			}
		}
		end()
	}
	return all
}

func spans(text string) (all []span) {
	for text != "" {
		found := marked.FindStringIndex(text)
		if found == nil {
			return append(all, span{Text: text})
		}
		if found[0] > 0 {
			all = append(all, span{Text: text[:found[0]]})
		}
		switch mark := text[found[0]:found[1]]; mark[0] {
		case '`':
			all = append(all, span{Text: strings.Trim(mark, "`"), Code: true})
		case '*':
			all = append(all, span{Text: strings.Trim(mark, "*"), Bold: true})
		default:
			name, link, _ := strings.Cut(mark[1:len(mark)-1], "](")
			all = append(all, span{Text: name, Link: link})
		}
		text = text[found[1]:]
	}
	return all
}
