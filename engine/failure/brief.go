package failure

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxText is the longest text of an error, in bytes, that is logged or stored. Errors quote what servers answer and
// what records hold, which is as long as the other side likes.
const MaxText = 2048

// Brief returns the text if it is at most [MaxText] long, else its beginning and how much is missing.
func Brief(text string) string { return Cut(text, MaxText) }

// Cut is [Brief] with another limit; what it adds comes on top.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := limit
	for end > limit-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return fmt.Sprintf("%s... (%d bytes more)", strings.Clone(text[:end]), len(text)-end)
}
