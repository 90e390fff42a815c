package web

import (
	_ "embed"
	"html/template"
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// pagePolicy is the content policy of pages: their own style, forms that come back here, and nothing else.
const pagePolicy = contentPolicy + "; form-action 'self'; base-uri 'none'"

//go:embed problem.html
var problemHTML string

var problemPage = template.Must(template.New("problem").Parse(problemHTML))

// WantsPage tells a person with a browser from a program: the Accept header names text/html and does not like JSON
// better. */* alone is a program's.
func WantsPage(r *http.Request) bool {
	page := quality(r, "text/html")
	return page > 0 && page >= max(quality(r, "application/json"), quality(r, "application/problem+json"))
}

// quality is how much the client asks for exactly this media type, 0 to 1.
func quality(r *http.Request, media string) float64 {
	best := 0.0
	for _, entry := range entityTags(r.Header["Accept"]) {
		named, parameters, err := mime.ParseMediaType(entry)
		if err != nil || named != media {
			continue
		}
		q := 1.0
		if given, has := parameters["q"]; has {
			if q, err = strconv.ParseFloat(given, 64); err != nil || !(q >= 0 && q <= 1) {
				q = 0
			}
		}
		best = max(best, q)
	}
	return best
}

// WritePage answers with an HTML page made from data. Nothing of it is stored, and the address of it, which may hold a
// token, is told to no other site.
func WritePage(w http.ResponseWriter, r *http.Request, status int, page *template.Template, data any) {
	var body strings.Builder
	if err := page.Execute(&body, data); err != nil {
		WriteProblem(w, r, err)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", pagePolicy)
	header.Set("Cache-Control", "no-store")
	header.Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body.String())) // the client may be gone; the error has no reader
}
