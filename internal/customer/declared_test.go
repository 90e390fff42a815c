package customer

import (
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	contracts "example.com/twinbox/api"
	"example.com/twinbox/dev/apitest"
)

// document is what api/openapi.yaml says of the answers.
var document = sync.OnceValues(func() (*apitest.Document, error) {
	data, err := contracts.Files.ReadFile("openapi.yaml")
	if err != nil {
		return nil, err
	}
	return apitest.Parse(data)
})

// requireDeclared asks whether the document is true of an answer.
func requireDeclared(t *testing.T, request *http.Request, answer *http.Response, body []byte) {
	t.Helper()
	declared, err := document()
	require.NoError(t, err)
	declared.RequireDeclared(t, request, answer, body)
}
