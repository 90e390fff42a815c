package parts

import (
	"path"
	"regexp"
	"strings"
)

var link = regexp.MustCompile(`\[([^\]]*)\]\(([^)#\s]+)(#[^)]*)?\)`)

// dropLinks leaves of a link to a file of before that is gone its text.
func (t Tree) dropLinks(before Tree) {
	for name, file := range t {
		if path.Ext(name) != ".md" {
			continue
		}
		text := link.ReplaceAllStringFunc(string(file.Content), func(whole string) string {
			found := link.FindStringSubmatch(whole)
			to := path.Join(path.Dir(name), found[2])
			if strings.Contains(found[2], "://") || t.exists(to) || !before.exists(to) {
				return whole
			}
			return found[1]
		})
		if text != string(file.Content) {
			t.set(name, text)
		}
	}
}

const promises = "ENGINE.md"

var (
	namedTest = regexp.MustCompile("(, )?`(Test[A-Z]\\w*)`")
	testFunc  = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
)

// dropPromises removes the promises of packages that are gone, and those that no test holds any more.
func (t Tree) dropPromises() {
	page, exists := t[promises]
	if !exists {
		return
	}
	known := t.tests()
	var kept strings.Builder
	skip := false
	for line := range strings.Lines(string(page.Content)) {
		if title, is := strings.CutPrefix(line, "## "); is {
			skip = !t.exists(strings.TrimSpace(title))
		}
		if strings.HasPrefix(line, "| ") {
			named, first := 0, true
			line = namedTest.ReplaceAllStringFunc(line, func(whole string) string {
				found := namedTest.FindStringSubmatch(whole)
				if named++; !known[found[2]] {
					return ""
				}
				if first {
					whole = strings.TrimPrefix(whole, ", ")
				}
				first = false
				return whole
			})
			if named > 0 && first {
				continue
			}
		}
		if !skip {
			kept.WriteString(line)
		}
	}
	t.set(promises, kept.String())
}

// dropTestNames takes the names of tests that are gone from the cells of the other pages' tables: what a row says stays
// true, it is only shown no more.
func (t Tree) dropTestNames(before Tree) {
	was, is := before.tests(), t.tests()
	for name, file := range t {
		if path.Ext(name) != ".md" || name == promises {
			continue
		}
		var kept strings.Builder
		for line := range strings.Lines(string(file.Content)) {
			if strings.HasPrefix(line, "| ") {
				line = namedTest.ReplaceAllStringFunc(line, func(whole string) string {
					if of := namedTest.FindStringSubmatch(whole)[2]; was[of] && !is[of] {
						return ""
					}
					return whole
				})
				line = strings.ReplaceAll(line, "| , `", "| `")
			}
			kept.WriteString(line)
		}
		if kept.String() != string(file.Content) {
			t.set(name, kept.String())
		}
	}
}

// tests are the names of all tests.
func (t Tree) tests() map[string]bool {
	known := map[string]bool{}
	for name, file := range t {
		if strings.HasSuffix(name, "_test.go") {
			for _, found := range testFunc.FindAllSubmatch(file.Content, -1) {
				known[string(found[1])] = true
			}
		}
	}
	return known
}
