package web

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/api"
	"example.com/twinbox/test/testkit"
)

func TestStatusesAreTheContracts(t *testing.T) {
	t.Parallel()
	documented := testkit.ProblemStatuses(t, api.OpenAPI)
	answered := map[Code]int{}
	for _, code := range []Code{
		CodeBodyMissing, CodeBodyUnreadable, CodeMalformedJSON, CodeNotAnObject, CodeUnknownMember,
		CodeMissingMember, CodeWrongType, CodeMissingParameter, CodeInvalidParameter, CodeIdempotencyKeyInvalid,
	} {
		answered[code] = refuse(code, "").Status
	}
	for code, status := range statuses {
		if code != CodeHostNotAllowed { // the Customer API does not use it
			answered[code] = status
		}
	}
	for code, status := range answered {
		require.Equal(t, documented[string(code)], status, code)
	}
}
