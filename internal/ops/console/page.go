package console

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"time"

	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/ops/admin/client"
	"example.com/twinbox/internal/service"
)

//go:embed templates
var templateFiles embed.FS

//go:embed assets
var assetFiles embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"number": number, "rate": rate, "age": age, "clock": clock, "after": after, "count": service.Count,
	"short": short, "isPositive": func(n *float64) bool { return n != nil && *n > 0 },
	"join": func(all []string) string { return strings.Join(all, ", ") }, "ref": func(n float64) *float64 { return &n },
	"verbOf": func(name string) string { return verbs[name].Do },
	"ageOf":  func(at, now time.Time) string { return adminapi.Age(now.Sub(at)) },
}).ParseFS(templateFiles, "templates/*.html"))

type page struct {
	content
	Operate  bool
	ReadOnly bool
	Links    []Link
	Section  string // the first part of the address
	At       time.Time
}

type content struct {
	template string
	Title    string
	data     any
}

func (c content) Body() (template.HTML, error) { return render(c.template, c.data) }

type missing string

func (m missing) Error() string { return string(m) }

func (c *Console) shows(of func(r *http.Request) (content, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		shown, err := of(r)
		status := http.StatusOK
		if err != nil {
			shown, status = content{"failed", "That did not work", err}, http.StatusBadGateway
		}
		problem, is := errors.AsType[*client.ProblemError](err)
		if _, none := errors.AsType[missing](err); none || is && problem.Problem.Status == http.StatusNotFound {
			status = http.StatusNotFound
		}
		c.page(w, r, status, shown)
	}
}

func (c *Console) page(w http.ResponseWriter, r *http.Request, status int, shown content) {
	section, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	c.answer(w, r, status, "page", page{
		content: shown, Operate: c.mayOperate(r), ReadOnly: c.cfg.ReadOnly, Links: c.cfg.Links, Section: section,
		At: time.Now(),
	})
}

func (c *Console) answer(w http.ResponseWriter, r *http.Request, status int, name string, data any) {
	content, err := render(name, data)
	if err != nil {
		c.cfg.Log.ErrorContext(r.Context(), "page not made", "page", name, "error", err)
		http.Error(w, "The page could not be made; the log of the console says why.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(content)) // the browser may be gone
}

// The result is escaped, and safe in another template.
func render(name string, data any) (template.HTML, error) {
	var out bytes.Buffer
	if err := templates.ExecuteTemplate(&out, name, data); err != nil {
		return "", fmt.Errorf("render: %w", err)
	}
	return template.HTML(out.String()), nil //nolint:gosec // made by html/template
}

const unknownText = "–"

func number(n *float64) string {
	if n == nil {
		return unknownText
	}
	return strconv.Itoa(int(*n))
}

func rate(n *float64) string {
	if n == nil || *n >= 9.95 {
		return number(n)
	}
	return strings.TrimSuffix(strconv.FormatFloat(*n, 'f', 1, 64), ".0")
}

func age(seconds *float64) string {
	if seconds == nil || *seconds <= 0 {
		return unknownText
	}
	return adminapi.Age(time.Duration(*seconds * float64(time.Second)))
}

func after(d time.Duration) string {
	if d < time.Second {
		return "+" + strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	}
	return "+" + adminapi.Age(d)
}

func short(eventType string) string {
	parts := strings.Split(eventType, ".")
	if len(parts) < 3 {
		return eventType
	}
	return strings.Join(parts[len(parts)-2:], ".")
}

func clock(t time.Time) string { return t.UTC().Format("2 Jan 15:04:05 UTC") }
