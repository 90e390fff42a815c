package main

import (
	"bytes"
	"embed"
	"fmt"
	"go/format"
	"path"
	"slices"
	"strings"
	"text/template"

	"example.com/twinbox/dev/tools/parts"
)

// Templates do not end in .go: nothing that reads Go in the tree may trip over them. They name the project by variables
// alone, so that they are the same in every clone, and carry the marks of parts like the files that they become.
//
//go:embed templates
var templates embed.FS

// texts are those of files, by the files' names, and those of lines, by the names that they define.
var texts = template.Must(template.New("").Funcs(template.FuncMap{
	"title": upperFirst, "upper": strings.ToUpper, "kebab": kebab, "snake": snake, "words": words,
}).ParseFS(templates, "templates/*.tmpl"))

// work is a change of a tree that is being put together.
type work struct {
	tree             parts.Tree
	values           any // what the templates are filled with
	created, changed []string
	there            []string // what it would have made, and what stands there already
	next             string   // what to do next
	err              error    // the first one
}

// create makes a file of a template. One that is there is its owner's.
func (w *work) create(name, from string) {
	if _, exists := w.tree[name]; exists {
		w.there = append(w.there, name)
		return
	}
	w.created = append(w.created, name)
	w.put(name, w.render(from))
}

// insert puts the lines of a template above a marker.
func (w *work) insert(at marker, from string) {
	if w.err != nil {
		return
	}
	file, exists := w.tree[at.file]
	text := string(file.Content)
	lines := w.render(from)
	switch {
	case !exists:
		w.err = fmt.Errorf("there is no %s, which lists it", at.file)
		return
	case strings.Contains(squeezed(text), squeezed(lines)):
		w.there = append(w.there, "a line of "+at.file)
		return
	}
	begin := at.find(text)
	if begin < 0 {
		w.err = fmt.Errorf("%s has no marker: add a line %q %s, and run this again", at.file, at.comment(), at.where)
		return
	}
	behind := text[begin:]
	if path.Ext(at.file) == ".go" { // gofmt leaves a comment that stands alone among arguments further left
		indent := lines[:len(lines)-len(strings.TrimLeft(lines, "\t"))]
		behind = indent + strings.TrimLeft(behind, "\t")
	}
	w.change(at.file, text[:begin]+lines+behind)
}

// importing adds an import of one of the project's packages. gofmt sorts it in.
func (w *work) importing(name, imported string) {
	text, line := string(w.tree[name].Content), "\t\""+imported+"\"\n"
	if w.err != nil || strings.Contains(text, line) {
		return
	}
	_, behind, found := strings.Cut(text, "import (\n")
	if !found {
		w.err = fmt.Errorf("%s has no list of imports: write %q as one", name, "import ()")
		return
	}
	list, _, _ := strings.Cut(behind, "\n)")
	at := strings.LastIndex(list, "\n\n") + 1 // the last group is the project's
	begin := len(text) - len(behind) + at
	if at > 0 {
		begin++
	}
	w.change(name, text[:begin]+line+text[begin:])
}

func (w *work) change(name, text string) {
	if !slices.Contains(w.changed, name) && !slices.Contains(w.created, name) {
		w.changed = append(w.changed, name)
	}
	w.put(name, text)
}

// put sets a file of the tree.
func (w *work) put(name, text string) {
	content := []byte(text)
	if path.Ext(name) == ".go" && w.err == nil {
		formatted, err := format.Source(content)
		if err != nil {
			w.err = fmt.Errorf("format %s: %w", name, err)
			return
		}
		content = formatted
	}
	mode := w.tree[name].Mode
	if mode == 0 {
		mode = 0o644
	}
	w.tree[name] = parts.File{Content: content, Mode: mode}
}

func (w *work) render(from string) string {
	if w.err != nil {
		return ""
	}
	var out bytes.Buffer
	if err := texts.ExecuteTemplate(&out, from, w.values); err != nil {
		w.err = fmt.Errorf("template %s: %w", from, err)
	}
	return out.String()
}

// done is the work as a whole: all of it is to be made, or all of it is there. What is there in part is another's, or
// has been changed since; nothing is put on top of it.
func (w *work) done(name string) (*work, error) {
	switch {
	case w.err != nil:
		return nil, w.err
	case len(w.there) > 0 && len(w.created)+len(w.changed) > 0:
		return nil, fmt.Errorf("%s is taken: %s stands there already, and %s does not; what was made once is yours, and "+
			"is not made again", name, w.there[0], append(w.created, w.changed...)[0])
	}
	return w, nil
}

// squeezed is a text without the blanks that gofmt moves.
func squeezed(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}
