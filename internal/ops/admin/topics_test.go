package admin_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/ops/admin"
	"example.com/twinbox/internal/ops/admin/adminapi"
)

// brokerTopics is what a broker says.
type brokerTopics struct {
	partitions map[string]int32
	behind     map[string]int64
}

func (b *brokerTopics) Partitions(_ context.Context, others ...string) (map[string]int32, error) {
	found := maps.Clone(b.partitions)
	maps.DeleteFunc(found, func(topic string, _ int32) bool {
		return strings.HasPrefix(topic, "earlier") && !slices.Contains(others, topic)
	})
	return found, nil
}

func (b *brokerTopics) Behind(context.Context, string) (map[string]int64, error) {
	return b.behind, nil
}

// Another number of partitions is confirmed when it is the broker's and every group has read the topic to its end.
func TestPartitionsAreConfirmedOnADrainedTopic(t *testing.T) {
	t.Parallel()
	broker := &brokerTopics{
		map[string]int32{"t": 12, "dlq.t": 6, "new": 3, "earlier": 2}, map[string]int64{"slow": 7, "slower": 9},
	}
	b := setup(t, func(c *admin.Config, _ *http.Server) { c.Topics = broker })
	_, err := b.pool.Exec(t.Context(), `
		insert into public.outbox_topic values ('t', 6), ('dlq.gone', 1), ('gone', 1), ('earlier', 1)`)
	require.NoError(t, err)
	const path = "/admin/v1/outbox/topics/confirm"
	confirm := func(members string) (int, []byte) {
		return b.call(t, "POST", path, `{"by":"ada","reason":"r","topic":"t",`+members+`}`)
	}
	spread := func() (n int) {
		require.NoError(t, b.pool.QueryRow(t.Context(),
			`select partitions from public.outbox_topic where topic = 't'`).Scan(&n))
		return n
	}

	status, body := b.call(t, "GET", "/admin/v1/outbox/topics", "")
	require.Equal(t, http.StatusOK, status)
	require.JSONEq(t, `{"items":[
		{"topic":"earlier","spread_over":1,"partitions":2,"behind":{"slow":7,"slower":9}},
		{"topic":"new","spread_over":0,"partitions":3,"behind":{"slow":7,"slower":9}},
		{"topic":"t","spread_over":6,"partitions":12,"behind":{"slow":7,"slower":9}},
		{"topic":"dlq.t","spread_over":0,"partitions":6,"behind":{"slow":7,"slower":9}},
		{"topic":"gone","spread_over":1,"behind":{}},
		{"topic":"dlq.gone","spread_over":1,"behind":{}}]}`, string(body))

	status, body = confirm(`"dry_run":false,"partitions":13`)
	requireProblem(t, status, body, http.StatusConflict, "partition_count")
	status, body = confirm(`"dry_run":false,"partitions":12`)
	requireProblem(t, status, body, http.StatusConflict, "not_drained")
	require.Contains(t, string(body), "2 consumer groups have not read the topic to its end; 7 records are before slow")
	status, body = b.call(t, "POST", path,
		`{"by":"ada","reason":"r","topic":"other","dry_run":false,"partitions":12}`)
	requireProblem(t, status, body, http.StatusNotFound, "partitions_unchanged")
	broker.behind = nil
	status, _ = confirm(`"dry_run":true,"partitions":12`)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, 6, spread())

	status, _ = confirm(`"dry_run":false,"partitions":12`)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, 12, spread())
	status, body = confirm(`"dry_run":false,"partitions":12`)
	requireProblem(t, status, body, http.StatusNotFound, "partitions_unchanged")
	broker.partitions["t"], broker.behind = 24, map[string]int64{"dead": 1}
	status, _ = confirm(`"dry_run":false,"partitions":24,"force":true`)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, 24, spread())

	_, body = b.call(t, "GET", "/admin/v1/audit?kind=topic", "")
	var actions adminapi.Actions
	require.NoError(t, json.Unmarshal(body, &actions))
	require.Len(t, actions.Items, 2)
	require.Equal(t, "confirm t: 6 partitions, 12 partitions", actions.Items[0].Verb+" "+actions.Items[0].Subject+": "+
		actions.Items[0].Before+", "+actions.Items[0].After)
}
