package parts

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Without is the tree without the parts. What it returns is a copy; a part with nothing in the tree is gone already.
func (t Tree) Without(gone ...Part) (Tree, error) {
	left := maps.Clone(t)
	if len(gone) == 0 {
		return left, nil
	}
	gone = t.withJoint(gone)
	module, err := t.Module()
	if err != nil {
		return nil, err
	}
	before := t.packages()
	maps.DeleteFunc(left, func(name string, _ File) bool {
		return slices.ContainsFunc(gone, func(p Part) bool { return p.holds(name) })
	})
	for name, file := range left {
		if !file.IsText() {
			continue
		}
		text, changed, err := unmark(string(file.Content), gone)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if changed {
			left.set(name, text)
			if strings.HasSuffix(name, ".go") {
				if err := left.dropUnused(name, file); err != nil {
					return nil, err
				}
			}
		}
	}
	for files := -1; files != len(left); { // a package that imports a removed one is removed, and so on
		files = len(left)
		after, missing := left.packages(), map[string]bool{}
		for folder := range before {
			missing[folder] = !after[folder]
		}
		left.dropImporters(module, missing)
	}
	left.dropUsers(module, t)
	left.dropEmbedded()
	left.dropModules()
	left.dropPromises()
	left.dropTestNames(t)
	left.dropLinks(t)
	return left, nil
}

func (t Tree) set(name, text string) { t[name] = File{Content: []byte(text), Mode: t[name].Mode} }

// mark is what a line of a part ends with, in the comment of its language.
var mark = regexp.MustCompile(`(?://|#|--|<!--) part: ([a-z]+)(, begin|, end)?(?: -->)?\s*$`)

// unmark takes the lines of the parts out of a text. A part's lines may lie within another's.
func unmark(text string, gone []Part) (_ string, changed bool, err error) {
	var kept strings.Builder
	var inside []string
	for line := range strings.Lines(text) {
		var found []string
		if strings.Contains(line, " part: ") { // looking for the pattern in each line of the tree takes seconds
			found = mark.FindStringSubmatch(line)
		}
		switch {
		case found == nil:
			if len(inside) == 0 {
				kept.WriteString(line)
			}
			continue
		case !slices.Contains(marks(), found[1]):
			return "", false, fmt.Errorf("a line has the mark of a part %q, which there is not", found[1])
		case !slices.ContainsFunc(gone, func(p Part) bool { return p.Name == found[1] }):
			if len(inside) == 0 {
				kept.WriteString(line)
			}
			continue
		}
		changed = true
		switch found[2] {
		case ", begin":
			inside = append(inside, found[1])
		case ", end":
			if len(inside) == 0 || inside[len(inside)-1] != found[1] {
				return "", false, fmt.Errorf("part %s ends where it has not begun", found[1])
			}
			inside = inside[:len(inside)-1]
		}
	}
	if len(inside) > 0 {
		return "", false, fmt.Errorf("part %s does not end", inside[0])
	}
	return kept.String(), changed, nil
}

// marks are the names that a line may have.
func marks() []string {
	names := Names()
	for _, j := range joint {
		names = append(names, j.Name)
	}
	return names
}

var embed = regexp.MustCompile(`(?m)^//go:embed .+$`)

// dropEmbedded takes files that are gone out of the directives that embed them.
func (t Tree) dropEmbedded() {
	for name, file := range t {
		if !strings.HasSuffix(name, ".go") {
			continue
		}
		text := embed.ReplaceAllStringFunc(string(file.Content), func(line string) string {
			words := strings.Fields(line)
			kept := slices.DeleteFunc(words[1:], func(word string) bool {
				return !strings.ContainsAny(word, "*?[:") && !t.exists(path.Join(path.Dir(name), word))
			})
			return strings.Join(append(words[:1:1], kept...), " ")
		})
		if text != string(file.Content) {
			t.set(name, text)
		}
	}
}

var used = regexp.MustCompile(`(?m)^\t\./(\S+)\n`)

// dropModules takes folders without a module out of the workspace.
func (t Tree) dropModules() {
	if work, exists := t["go.work"]; exists {
		t.set("go.work", used.ReplaceAllStringFunc(string(work.Content), func(line string) string {
			if _, exists := t[used.FindStringSubmatch(line)[1]+"/go.mod"]; exists {
				return line
			}
			return ""
		}))
	}
}
