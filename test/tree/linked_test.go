package tree_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/services"
)

var notLinked = []string{
	"example.com/twinbox/dev", "example.com/twinbox/test", "example.com/twinbox/bench", "example.com/twinbox/examples",
	"example.com/twinbox/internal/inbox/kv", "testing", "net/http/httptest", "github.com/stretchr/testify",
	"go.uber.org/goleak", "github.com/nats-io",
	"github.com/twmb/franz-go", // kfake and its client
	"github.com/emersion/go-smtp", "github.com/compose-spec",
}

func TestNoServiceLinksCodeForTests(t *testing.T) {
	t.Parallel()
	for _, name := range services.Names() {
		program := "./cmd/" + name
		list := exec.CommandContext(t.Context(), "go", "list", "-deps", program)
		list.Dir = root
		output, err := list.Output()
		require.NoError(t, err, program)
		linked := strings.Fields(string(output))
		require.Greater(t, len(linked), 100, program)
		for _, name := range linked {
			for _, folder := range notLinked {
				require.False(t, strings.HasPrefix(name+"/", folder+"/"), "%s links %s", program, name)
			}
		}
	}
}
