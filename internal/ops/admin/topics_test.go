package admin_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/ops/admin"
)

type brokerTopics struct {
	partitions map[string]int32
	behind     map[string]int64
}

func (b *brokerTopics) Partitions(context.Context) (map[string]int32, error) {
	return b.partitions, nil
}

func (b *brokerTopics) Behind(context.Context, string) (map[string]int64, error) {
	return b.behind, nil
}

func TestTopicsOfEventsComeBeforeThoseOfCopies(t *testing.T) {
	t.Parallel()
	broker := &brokerTopics{map[string]int32{"t": 12, "dlq.t": 6, "new": 3}, map[string]int64{"slow": 7}}
	b := withoutDatabase(t, func(c *admin.Config, _ *http.Server) { c.Topics = broker })
	status, body := b.call(t, "GET", "/admin/v1/outbox/topics", "")
	require.Equal(t, http.StatusOK, status)
	require.JSONEq(t, `{"items":[
		{"topic":"new","partitions":3,"behind":{"slow":7}},
		{"topic":"t","partitions":12,"behind":{"slow":7}},
		{"topic":"dlq.t","partitions":6,"behind":{"slow":7}}]}`, string(body))
}
