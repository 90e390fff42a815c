package forwarder

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// receiver accepts posted events and shows them. It keeps the last 100 in memory, without payloads.
type receiver struct {
	mu       sync.Mutex
	received []received
}

type received struct {
	IdempotencyKey string    `json:"idempotency_key"`
	Type           string    `json:"type"`
	Bytes          int64     `json:"bytes"`
	At             time.Time `json:"at"`
	Times          int       `json:"times"` // of its arrivals
}

const (
	receiverKeeps = 100
	receiverLimit = 1 << 20
)

func newReceiver() http.Handler {
	r := &receiver{received: []received{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /", r.take)
	mux.HandleFunc("GET /", r.show)
	return mux
}

func (r *receiver) take(w http.ResponseWriter, request *http.Request) {
	n, err := io.Copy(io.Discard, http.MaxBytesReader(w, request.Body, receiverLimit))
	if err != nil {
		http.Error(w, "the event is too large", http.StatusRequestEntityTooLarge)
		return
	}
	w.WriteHeader(http.StatusNoContent)
	key := request.Header.Get("Idempotency-Key")
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.received {
		if r.received[i].IdempotencyKey == key {
			r.received[i].Times++
			return
		}
	}
	r.received = append(r.received, received{key, request.Header.Get("Ce-Type"), n, time.Now(), 1})
	r.received = r.received[max(0, len(r.received)-receiverKeeps):]
}

func (r *receiver) show(w http.ResponseWriter, _ *http.Request) {
	r.mu.Lock()
	shown := slices.Clone(r.received)
	r.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"received": shown})
}
