package admin_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/ops/admin"
)

// deadlines is a connection that remembers how long its reads may take.
type deadlines struct {
	http.ResponseWriter
	mu   sync.Mutex
	last time.Time
	set  int
}

func (d *deadlines) SetReadDeadline(at time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = at
	d.set++
	return nil
}

func (*deadlines) SetWriteDeadline(time.Time) error { return nil }
func (*deadlines) EnableFullDuplex() error          { return nil }

// An import may be of any length, and a client that stops in the middle holds no connection: each read has its time.
func TestEachReadOfAnImportHasItsTime(t *testing.T) {
	t.Parallel()
	var handler http.Handler
	setup(t, func(cfg *admin.Config, _ *http.Server) {
		var err error
		handler, err = admin.New(*cfg)
		require.NoError(t, err)
	})
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost,
		"/admin/v1/dead-letters/import?by=ada&reason=r&dry_run=false", strings.NewReader("{}\n{}\n"))
	request.Header.Set("Authorization", "Bearer "+token)
	recorder := httptest.NewRecorder()
	connection := &deadlines{ResponseWriter: recorder}
	handler.ServeHTTP(connection, request)
	require.Equal(t, http.StatusOK, recorder.Code, recorder.Body.String())
	require.Contains(t, recorder.Body.String(), `"failed":2`)
	require.NotZero(t, connection.set)
	require.WithinDuration(t, time.Now().Add(30*time.Second), connection.last, 30*time.Second)
}
