package web

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"strings"
)

// WriteJSON answers with a JSON document, or 500 if it cannot encode the value.
func WriteJSON(w http.ResponseWriter, r *http.Request, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		WriteProblem(w, r, fmt.Errorf("encode answer: %w", err))
		return
	}
	WriteEncoded(w, status, body)
}

func WriteEncoded(w http.ResponseWriter, status int, document []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(document) // the client may be gone
}

// DocumentPath is where a listener serves its OpenAPI document.
const DocumentPath = "/openapi.json"

func Document(document []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { WriteEncoded(w, http.StatusOK, document) }
}

const pagePolicy = contentPolicy + "; form-action 'self'; base-uri 'none'"

//go:embed problem.html
var problemHTML string

var problemPage = template.Must(template.New("problem").Parse(problemHTML))

// WantsPage reports whether Accept names text/html first, as browsers do.
func WantsPage(r *http.Request) bool {
	media, _, _ := strings.Cut(list(r.Header["Accept"])[0], ";")
	return strings.EqualFold(media, "text/html")
}

// WritePage answers with an HTML page. Its address, which may hold a token, reaches no other site.
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
	_, _ = w.Write([]byte(body.String())) // the client may be gone
}
