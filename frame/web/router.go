package web

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"
)

// NewRouter returns a router whose requests are named, traced, logged, limited and protected from panics, and whose
// unknown paths and methods are problems. Mount handlers on it; it is ready to be served.
//
// Methods are exactly what is mounted: HEAD is not answered by a GET handler unless it is mounted, since a GET may
// do more than read. OPTIONS answers 204 with Allow. CORS is not offered.
func NewRouter(config Config, log *slog.Logger) (*chi.Mux, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	config = config.WithDefaults()
	r := chi.NewRouter()
	metrics, err := newMetrics(config.Registerer)
	if err != nil {
		return nil, err
	}
	r.Use(begin(config, log), traced(config.Traces), observed(metrics), limited(config),
		deadline(config.RequestTimeout))
	r.NotFound(func(w http.ResponseWriter, req *http.Request) {
		WriteProblem(w, req, refuse(CodeNotFound, "There is nothing at this path."))
	})
	if config.Document != nil {
		r.Get(DocumentPath, Document(config.Document))
	}
	r.MethodNotAllowed(func(w http.ResponseWriter, req *http.Request) { otherMethod(r, w, req) })
	return r, nil
}

// otherMethod answers a method that no handler of the path takes. The router calls it also for methods it has never
// heard of, whether the path exists or not.
func otherMethod(routes *chi.Mux, w http.ResponseWriter, r *http.Request) {
	allowed := allowedMethods(routes, r)
	if len(allowed) == 0 {
		routes.NotFoundHandler()(w, r)
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	WriteProblem(w, r, refuse(CodeMethodNotAllowed, "This path takes "+strings.Join(allowed, ", ")+"."))
}

func allowedMethods(routes chi.Routes, r *http.Request) []string {
	path := r.URL.RawPath
	if path == "" {
		path = r.URL.Path
	}
	var allowed []string
	for _, method := range []string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	} {
		if routes.Match(chi.NewRouteContext(), method, path) {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) > 0 {
		allowed = append(allowed, http.MethodOptions)
	}
	return slices.Clip(allowed)
}
