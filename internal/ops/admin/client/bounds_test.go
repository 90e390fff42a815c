package client

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/ops/admin/adminapi"
)

func TestAnAnswerWithoutAnEndIsCutOff(t *testing.T) {
	t.Parallel()
	endless := strings.Repeat("x", 1<<20)
	sent := make(chan int, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := 0
		w.Header().Set("Twinbox-Service", "customer")
		for {
			written, err := w.Write([]byte(endless))
			if n += written; err != nil {
				sent <- n
				return
			}
		}
	}))
	defer server.Close()
	service, err := New("customer", server.URL, "token")
	require.NoError(t, err)
	ask := Get("/admin/v1/service")
	_, err = Stream(t.Context(), service, func(int64, int64) {}, ask)
	require.ErrorIs(t, err, ErrCutOff)
	require.Less(t, <-sent, 2*maxAnswerBytes)
	_, err = Call[adminapi.Service](t.Context(), service, ask)
	require.Error(t, err)
	require.Less(t, <-sent, 2*maxAnswerBytes)
}

func TestAResultWithAndWithoutProgress(t *testing.T) {
	t.Parallel()
	const half, cutOff = `{"done":2}` + "\n", "the answer was cut off"
	for answer, want := range map[string]struct {
		count int64
		fails string
	}{
		`{"dry_run":false,"count":3,"failed":0}`:                     {3, ""},
		half + `{"result":{"dry_run":false,"count":4,"failed":0}}`:   {4, ""},
		half + `{"problem":{"code":"c","status":409,"detail":"no"}}`: {2, "customer: no (c)"},
		half:           {2, cutOff},
		half + `{"res`: {2, cutOff},
		"":             {0, cutOff},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Twinbox-Service", "customer")
			_, _ = w.Write([]byte(answer))
		}))
		t.Cleanup(server.Close)
		service, err := New("customer", server.URL, "token")
		require.NoError(t, err)
		result, err := Stream(t.Context(), service, func(int64, int64) {}, Post("/admin/v1/outbox/republish", nil))
		require.Equal(t, want.count, result.Count, answer)
		if want.fails == "" {
			require.NoError(t, err, answer)
		} else {
			require.ErrorContains(t, err, want.fails, answer)
		}
	}
}

func TestAnAddressIsCheckedBeforeItIsDialled(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"127.0.0.1:8081", "customer:8081", "[::1]:8081", "https://ops.example.org/customer/"} {
		_, err := New("customer", good, "token")
		require.NoError(t, err, good)
	}
	for _, bad := range []string{
		"", "customer", "127.0.0.1:0", "127.0.0.1:99999", "::1:80", "http://h:99999", "ftp://h",
		"http://user@h", "http://h?x=1", "http://h\u202e", "h\u202e:80", "http://",
	} {
		_, err := New("customer", bad, "token")
		require.ErrorContains(t, err, "read address of customer", bad)
	}
}
