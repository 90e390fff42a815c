package forwarder

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Receiver accepts posted events and shows them. It keeps the last 100 in memory, without payloads.
type Receiver struct {
	mu       sync.Mutex
	received []*Received
}

// Received is one event that arrived.
type Received struct {
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

// ServeHTTP implements [http.Handler].
func (r *Receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	switch request.Method {
	case http.MethodPost:
		n, err := io.Copy(io.Discard, http.MaxBytesReader(w, request.Body, receiverLimit))
		if err != nil {
			http.Error(w, "the event is too large", http.StatusRequestEntityTooLarge)
			return
		}
		r.take(request.Header.Get("Idempotency-Key"), request.Header.Get("Ce-Type"), n)
		w.WriteHeader(http.StatusNoContent)
	case http.MethodGet:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"received": r.Received()})
	default:
		w.Header().Set("Allow", "GET, POST")
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

func (r *Receiver) take(key, eventType string, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, known := range r.received {
		if known.IdempotencyKey == key {
			known.Times++
			return
		}
	}
	r.received = append(r.received, &Received{key, eventType, n, time.Now(), 1})
	r.received = r.received[max(0, len(r.received)-receiverKeeps):]
}

// Received returns the events in the order of their first arrival.
func (r *Receiver) Received() []Received {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := []Received{}
	for _, event := range r.received {
		list = append(list, *event)
	}
	return list
}

func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	stopped := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stopped()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
