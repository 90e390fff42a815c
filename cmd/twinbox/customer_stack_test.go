package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local"
	"example.com/twinbox/dev/local/stacktest"
	"example.com/twinbox/dev/operations"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := sharedStack.stop(); err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		code = max(code, 1)
	}
	os.Exit(code)
}

// The pages mention only these, so a new service does not change them.
var shownServices = []string{"customer", "notification"}

type stack struct {
	start  func() error
	parent string
	dir    string
	at     local.Addresses
	cancel context.CancelFunc
	ended  chan error
}

var sharedStack = newStack(local.Config{Settings: stacktest.Patient()})

func newStack(cfg local.Config) *stack {
	h := &stack{ended: make(chan error, 1)}
	h.start = sync.OnceValue(func() error { return h.open(cfg) })
	return h
}

func (h *stack) open(cfg local.Config) (err error) {
	if h.parent, err = os.MkdirTemp("", "twinbox-test-"); err != nil {
		return err
	}
	if err := os.Chmod(h.parent, 0o711); err != nil { // a folder of one's own is closed to the account of root's database
		return err
	}
	h.dir = filepath.Join(h.parent, "state")
	ctx, cancel := context.WithCancel(context.Background())
	h.cancel = cancel
	ready := make(chan local.Addresses, 1)
	cfg.Only = shownServices
	cfg.Programs = []local.Program{operations.Console("127.0.0.1:0")}
	cfg.Dir, cfg.Ready = h.dir, func(at local.Addresses) { ready <- at }
	go func() { h.ended <- local.Run(ctx, cfg) }()
	select {
	case h.at = <-ready:
		return nil
	case err := <-h.ended:
		h.ended <- err
		return err
	}
}

func (h *stack) stop() error {
	if h.cancel == nil {
		return nil
	}
	h.cancel()
	return errors.Join(<-h.ended, os.RemoveAll(h.parent))
}

// Tests sign up their own people and look only at those.
func shared(t *testing.T) *stack {
	t.Helper()
	require.NoError(t, sharedStack.start())
	return sharedStack
}

func (h *stack) signUp(t *testing.T, email string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+h.at.API()+"/v1/signups",
		strings.NewReader(`{"email":"`+email+`","name":"Ada"}`))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", `"`+email+`"`)
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	var user struct {
		ID string `json:"user_id"`
	}
	require.Equal(t, http.StatusCreated, response.StatusCode)
	require.NoError(t, json.NewDecoder(response.Body).Decode(&user))
	return user.ID
}

func (h *stack) twinbox(t *testing.T, args ...string) result {
	t.Helper()
	return twinbox(t, append(args, "--dir", h.dir)...)
}
