package mailbox

import (
	_ "embed"
	"encoding/json"
	"html/template"
	"io"
	"net"
	"net/http"
	"time"
)

//go:embed page.html
var pageSource string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"pieces": pieces,
	"clock":  func(t time.Time) string { return t.Local().Format("2 Jan 2006, 15:04:05") },
}).Parse(pageSource))

const requestTimeout = 10 * time.Second

func newHTTP(cfg Config, store *store) *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		// Only the page's own style may load or run, with any content of a mail.
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "+
			"form-action 'none'; frame-ancestors 'none'")
		view := struct {
			SMTP     string
			Messages []Message
		}{cfg.SMTPAddr, store.all()}
		if err := page.Execute(w, view); err != nil {
			cfg.Log.Warn("write page", "error", err)
		}
	})
	mux.HandleFunc("GET /api/messages", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(cfg, w, store.all())
	})
	mux.HandleFunc("GET /api/messages/{id}", func(w http.ResponseWriter, r *http.Request) {
		message, found := store.one(r.PathValue("id"))
		if !found {
			http.Error(w, "no such mail", http.StatusNotFound)
			return
		}
		writeJSON(cfg, w, message)
	})
	// Mailpit has the text of the newest mail at this address too: one request works with both.
	mux.HandleFunc("GET /view/latest.txt", func(w http.ResponseWriter, _ *http.Request) {
		messages := store.all()
		if len(messages) == 0 {
			http.Error(w, "no mail has arrived yet", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if _, err := io.WriteString(w, messages[0].Text+"\n"); err != nil {
			cfg.Log.Warn("write message", "error", err)
		}
	})
	return &http.Server{
		Handler: local(mux), ReadHeaderTimeout: requestTimeout, ReadTimeout: requestTimeout, WriteTimeout: requestTimeout,
	}
}

func writeJSON(cfg Config, w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(body); err != nil {
		cfg.Log.Warn("write messages", "error", err)
	}
}

// local serves requests for a loopback name only. A web page elsewhere could otherwise point a name of its own at
// 127.0.0.1 and read the mails through the visitor's browser.
func local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "ask for a loopback address", http.StatusMisdirectedRequest)
			return
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Referrer-Policy", "no-referrer")
		next.ServeHTTP(w, r)
	})
}

// piece is a run of a mail's text, or a link in it.
type piece struct {
	Text string
	Link bool
}

func pieces(text string) []piece {
	var all []piece
	end := 0
	for _, at := range link.FindAllStringIndex(text, -1) {
		all = append(all, piece{Text: text[end:at[0]]}, piece{Text: text[at[0]:at[1]], Link: true})
		end = at[1]
	}
	return append(all, piece{Text: text[end:]})
}
