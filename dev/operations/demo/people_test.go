package demo

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
)

func TestWhatPeopleMakeOfAnAnswer(t *testing.T) {
	t.Parallel()
	status, code, keys := 0, "", map[string]bool{}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys[r.Header.Get("Idempotency-Key")] = true
		w.WriteHeader(status)
		_, _ = io.WriteString(w, fmt.Sprintf(`{"user_id":"u-1","code":%q}`, code))
	}))
	defer api.Close()
	people := newPeople(api.Listener.Addr().String())
	defer people.http.CloseIdleConnections()
	for _, row := range []struct {
		status int
		code   string
		fine   bool
	}{
		{http.StatusCreated, "", true},
		{http.StatusServiceUnavailable, "unavailable", false},
		{http.StatusConflict, "email_taken", false},
	} {
		status, code = row.status, row.code
		id, err := people.signUp(t.Context(), 7)
		require.Equal(t, row.fine, err == nil && id == "u-1", row.code)
	}
	require.Len(t, keys, 1, "one visitor has one key")
	for answer, want := range map[int]bool{http.StatusOK: true, http.StatusNotFound: false} {
		status = answer
		has, err := people.hasProfile(t.Context(), "u-1")
		require.NoError(t, err)
		require.Equal(t, want, has)
	}
	status = http.StatusServiceUnavailable
	_, err := people.hasProfile(t.Context(), "u-1")
	require.Error(t, err, "it is not known")
}

func TestPoisonIsWhatTheContractRefuses(t *testing.T) {
	t.Parallel()
	event := newPoison()
	checker, err := contract.Load()
	require.NoError(t, err)
	require.Error(t, checker.Validate(event))
	require.NotEqual(t, contract.SourceCustomer, event.Source, "Customer's verification does not count it")
}
