package web

import "net/http"

// DocumentPath is where a listener has the OpenAPI document of what it offers.
const DocumentPath = "/openapi.json"

// Document answers with an OpenAPI document, which is JSON.
func Document(document []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(document) // the client may be gone
	}
}
