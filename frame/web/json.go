package web

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// WriteJSON answers with a JSON document. A value that cannot be encoded is a defect and answered as one.
func WriteJSON(w http.ResponseWriter, r *http.Request, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		WriteProblem(w, r, fmt.Errorf("encode answer: %w", err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone; the error has no reader
}
