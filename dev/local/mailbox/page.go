package mailbox

import (
	_ "embed"
	"html/template"
	"io"
	"net"
	"net/http"
	"time"
)

var (
	//go:embed page.html
	pageSource string
	//go:embed page.js
	script []byte
)

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"pieces": pieces,
	"clock":  func(t time.Time) string { return t.Local().Format("2 Jan 2006, 15:04:05 MST") },
}).Parse(pageSource))

const requestTimeout = 10 * time.Second

func (m *Mailbox) newHTTP() *http.Server {
	mux := http.NewServeMux()
	show := func(path, kind string, write func(w io.Writer) error) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_ = write(w)
		})
	}
	show("/{$}", "text/html; charset=utf-8", func(w io.Writer) error {
		return page.Execute(w, struct {
			SMTP     string
			Messages []Message
		}{m.SMTPAddr(), m.Messages()})
	})
	show("/page.js", "text/javascript", func(w io.Writer) error {
		_, err := w.Write(script)
		return err
	})
	// Mailpit has this address too: one request works with both.
	mux.HandleFunc("GET /view/latest.txt", func(w http.ResponseWriter, _ *http.Request) {
		messages := m.Messages()
		if len(messages) == 0 {
			http.Error(w, "no mail has arrived yet", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, messages[0].Text+"\n")
	})
	return &http.Server{
		Handler: local(mux), ReadHeaderTimeout: requestTimeout, ReadTimeout: requestTimeout, WriteTimeout: requestTimeout,
	}
}

// local serves a loopback name only. A foreign web page could otherwise point its name at 127.0.0.1 and read the mails.
func local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(host, "80")
		}
		if !IsLoopback(host) {
			http.Error(w, "ask for a loopback address", http.StatusMisdirectedRequest)
			return
		}
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; "+
			"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Referrer-Policy", "no-referrer")
		next.ServeHTTP(w, r)
	})
}
