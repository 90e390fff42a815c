package customer

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	contracts "example.com/twinbox/api"
	"example.com/twinbox/test/testkit"
)

var document = sync.OnceValues(func() (*testkit.OpenAPI, error) {
	data, err := contracts.Files.ReadFile("openapi.yaml")
	if err != nil {
		return nil, err
	}
	return testkit.ParseOpenAPI(data)
})

func TestTheAPIShowsItsDocument(t *testing.T) {
	t.Parallel()
	handler := newHandler(&api{}, Config{}, nil, nil, slog.New(slog.DiscardHandler))
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/openapi.json", http.NoBody))
	require.Equal(t, http.StatusOK, answer.Code)
	require.Equal(t, string(contracts.OpenAPI), answer.Body.String())
	require.Equal(t, string(contracts.OpenAPI), string(Service.API), "the admin listener shows the same")
}
