package main

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the output of the commands into the page that is tested")

// page is a Markdown page whose console blocks are run in order; its comments name actions in the world. An id on the
// page represents the one of this run in the same place, also in later commands.
type page struct {
	path  string
	stack *stack
	world map[string]func(t *testing.T)
	dir   string // for files that commands name
	last  int    // exit code

	ids map[string]string // of the page to those of this run
}

var worldComment = regexp.MustCompile(`^<!-- world: (.+) -->$`)

func (p *page) run(t *testing.T) {
	t.Helper()
	content, err := os.ReadFile(p.path)
	require.NoError(t, err)
	p.ids = map[string]string{}
	var out []string
	lines := strings.Split(string(content), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		out = append(out, line)
		if comment := worldComment.FindStringSubmatch(line); comment != nil {
			change, known := p.world[comment[1]]
			require.True(t, known, "no step makes it so that %s", comment[1])
			change(t)
		}
		if line != "```console" {
			continue
		}
		end := i + 1
		for lines[end] != "```" {
			end++
		}
		out = append(out, p.block(t, lines[i+1:end])...)
		i = end - 1
	}
	if *update {
		require.NoError(t, os.WriteFile(p.path, []byte(strings.Join(out, "\n")), 0o644)) //nolint:gosec // a page
	}
}

func (p *page) block(t *testing.T, lines []string) (written []string) {
	t.Helper()
	for len(lines) > 0 {
		command := lines[0]
		require.True(t, strings.HasPrefix(command, "$ "), "a block begins with a command: %s", command)
		lines = lines[1:]
		want := 0
		for want < len(lines) && !strings.HasPrefix(lines[want], "$ ") {
			want++
		}
		got := p.command(t, strings.TrimPrefix(command, "$ "))
		if *update {
			p.learn(lines[:want], got)
		} else {
			p.compare(t, command, lines[:want], got)
		}
		written = append(append(written, p.onPage(command)), got...)
		lines = lines[want:]
	}
	return written
}

func (p *page) command(t *testing.T, line string) []string {
	t.Helper()
	if line == "echo $?" {
		return []string{strconv.Itoa(p.last)}
	}
	args := split(line)
	require.Equal(t, "twinbox", args[0], line)
	for i, arg := range args {
		arg = anyID.ReplaceAllStringFunc(arg, func(id string) string {
			if real, known := p.ids[id]; known {
				return real
			}
			return id
		})
		if strings.HasSuffix(arg, ".json") || strings.HasSuffix(arg, ".jsonl") {
			arg = filepath.Join(p.dir, arg)
		}
		args[i] = arg
	}
	r := p.stack.twinbox(t, args[1:]...)
	p.last = r.code
	text := strings.ReplaceAll(r.stdout+r.stderr, p.dir+string(filepath.Separator), "")
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

var (
	anyID   = regexp.MustCompile(`\b(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?:customer|notification)/\d+)\b`)
	anyTime = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
	anyAge  = regexp.MustCompile(`\b\d+[smhd]\b`)
	record  = regexp.MustCompile(`\[\d+\]@\d+`)
	blanks  = regexp.MustCompile(` {2,}`)
)

func (p *page) compare(t *testing.T, command string, want, got []string) {
	t.Helper()
	require.Equal(t, mask(want), mask(got), "%s: if this is right, run the test with -update", command)
	expected, real := p.learn(want, got)
	for i, id := range expected {
		require.Equal(t, p.ids[id], real[i], "%s: %s stands for one thing", command, id)
	}
}

// learn needs as many ids in the output as on the page.
func (p *page) learn(want, got []string) (expected, real []string) {
	expected = anyID.FindAllString(strings.Join(want, "\n"), -1)
	real = anyID.FindAllString(strings.Join(got, "\n"), -1)
	for i, id := range expected {
		if _, known := p.ids[id]; !known && len(real) == len(expected) {
			p.ids[id] = real[i]
		}
	}
	return expected, real
}

func mask(lines []string) string {
	text := strings.Join(lines, "\n")
	text = anyTime.ReplaceAllString(anyID.ReplaceAllString(text, "ID"), "TIME")
	text = anyAge.ReplaceAllString(text, "AGE")
	return blanks.ReplaceAllString(record.ReplaceAllString(text, "[N]@N"), " ")
}

func (p *page) onPage(command string) string {
	return anyID.ReplaceAllStringFunc(command, func(id string) string {
		if real, known := p.ids[id]; known {
			return real
		}
		return id
	})
}

func split(line string) []string {
	var words []string
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			words = append(words, part)
			continue
		}
		words = append(words, strings.Fields(part)...)
	}
	return words
}
