package admin_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/ops/admin"
	"example.com/twinbox/internal/ops/admin/adminapi"
)

const megabyte = 1 << 20

// It is not parallel: it measures the allocations of the whole process.
func TestManyLargeLetters(t *testing.T) {
	const letters = 60
	b := setup(t, withConsumers(admin.Consumer{Name: "a"}))
	b.file(t, filed{"a", "", "permanent", "c", "waiting", "", letters})
	b.exec(t, `update public.dead_letter set payload = convert_to(repeat('x', $1), 'UTF8'),
		error = case when id <= 20 then repeat('e', $1) else 'e' end,
		key = case when id <= 20 then convert_to(repeat('k', $1), 'UTF8') else 'k' end`, megabyte)

	before := allocated()
	status, body := b.call(t, "POST", "/admin/v1/dead-letters/query", `{"limit":1000}`)
	require.Equal(t, http.StatusOK, status)
	var page adminapi.DeadLetters
	require.NoError(t, json.Unmarshal(body, &page))
	require.Len(t, page.Items, letters)
	require.Equal(t, megabyte, page.Items[0].Bytes)
	require.Nil(t, page.Items[0].Payload)
	status, body = b.call(t, "POST", "/admin/v1/dead-letters/groups", `{}`)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, string(body), fmt.Sprintf(`"count":%d`, letters))
	read[adminapi.InboxEvents](t, b, "inbox/events", adminapi.LookupQuery{EventID: "c1"})
	t.Logf("%d KiB for three questions about %d MiB", (allocated()-before)>>10, letters)
	require.Less(t, allocated()-before, uint64(30*megabyte), "of the service and of its caller, who are one process here")
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func TestTheTailOfLargeEvents(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.add(t, 10)
	b.exec(t, `update public.outbox set payload = convert_to(repeat('x', $1), 'UTF8')`, megabyte)
	events := read[adminapi.OutboxEvents](t, b, "outbox/events", adminapi.OutboxQuery{Payload: true})
	require.Len(t, events.Items, 10)
	shown := 0
	for _, e := range events.Items {
		require.Equal(t, megabyte, e.Bytes)
		if e.Payload != nil {
			shown++
		}
	}
	require.Equal(t, 8, shown)
	require.NotNil(t, events.Items[9].Payload, "the newest ones")
}
