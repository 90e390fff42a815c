package main

import (
	"bufio"
	"bytes"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type documented struct {
	kind string
	late bool // the metric appears with its first event
}

var metricRow = regexp.MustCompile(
	"^\\| `([a-z_]+)(?:\\{[a-z,]+\\})?` \\| (gauge|counter|histogram)(, late)? \\|")

func documentedMetrics(t *testing.T) map[string]documented {
	t.Helper()
	page, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "\n## Metrics\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	rows := map[string]documented{}
	for line := range strings.Lines(section) {
		if row := metricRow.FindStringSubmatch(line); row != nil {
			require.NotContains(t, rows, row[1], "two rows")
			rows[row[1]] = documented{kind: row[2], late: row[3] != ""}
		}
	}
	return rows
}

func exported(t *testing.T, h *stack) (kinds, helps map[string]string) {
	t.Helper()
	kinds, helps = map[string]string{}, map[string]string{}
	for _, admin := range []string{h.at.Services["customer"].Admin, h.at.Services["notification"].Admin} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+admin+"/metrics", http.NoBody)
		require.NoError(t, err)
		response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
		require.NoError(t, err)
		lines := bufio.NewScanner(response.Body)
		for lines.Scan() {
			fields := strings.SplitN(lines.Text(), " ", 4)
			switch {
			case len(fields) < 4:
			case fields[1] == "TYPE":
				kinds[fields[2]] = fields[3]
			case fields[1] == "HELP":
				helps[fields[2]] = fields[3]
			}
		}
		require.NoError(t, response.Body.Close())
	}
	return kinds, helps
}

// Their libraries document these.
var foreignMetrics = regexp.MustCompile(`^(go|process|promhttp|pgxpool)_`)

func TestMetricsPage(t *testing.T) {
	t.Parallel()
	h := shared(t)
	user := h.signUp(t, "metrics@example.org")
	h.tail(t, user, 2)
	page := documentedMetrics(t)
	kinds, helps := exported(t, h)
	for name, kind := range kinds {
		if foreignMetrics.MatchString(name) {
			continue
		}
		require.Contains(t, page, name, "docs/operations.md has no row for it")
		require.Equal(t, page[name].kind, kind, name)
		require.NotEmpty(t, helps[name], name)
		if kind == "counter" {
			require.Regexp(t, `_total$`, name)
		}
	}
	source := goSource(t)
	for _, name := range slices.Sorted(maps.Keys(page)) {
		if page[name].late {
			require.Regexp(t, `"(`+name+`|`+strings.TrimPrefix(name, "outbox_relay_")+`)"`, source, "no code has %s", name)
			continue
		}
		require.Contains(t, kinds, name, "docs/operations.md has a metric that no service exports")
	}
}

func goSource(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	root := os.DirFS("../..")
	require.NoError(t, fs.WalkDir(root, "internal", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := fs.ReadFile(root, path)
		if bytes.Contains(content, []byte("prometheus/client_golang")) {
			text.Write(content)
		}
		return err
	}))
	return text.String()
}
