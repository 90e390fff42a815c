package e2e

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/testkit"
)

// Each partition has each poison, so those of the person's key have it before the person's events.
func TestTheStoryGoesOnBehindPoison(t *testing.T) {
	inProcess(t)
	h := newStack(t)
	poison := map[string]func(*rawEvent){
		"missing_id":       set("ce_id", ""),
		"invalid_header":   set("ce_dataschema", "\xff\x00"),
		"empty_value":      func(r *rawEvent) { r.value = nil }, // a tombstone
		"invalid_json":     value("\x00\x01garbage"),
		"schema_violation": value(`{"user_id":7}`),
		"invalid_time":     set("ce_time", "yesterday"),
		"structured_mode":  set("content-type", "application/cloudevents+json"),
	}
	const partitions = 6
	for _, change := range poison {
		for partition := range int32(partitions) {
			broken := healthy()
			change(broken)
			record := broken.message()
			record.Partition = partition
			h.send(t, record)
		}
	}
	h.start(t, customerService)
	h.start(t, notificationService)
	h.tell(t)
	for code := range poison { // the other partitions have their own time
		for consumer, db := range map[string]*pgxpool.Pool{
			"customer.profile": h.customerDB, "notification.users": h.notificationDB,
		} {
			sql := fmt.Sprintf(`select count(*) from dead_letter where consumer = '%s' and code = '%s' and class = 'permanent'`,
				consumer, code)
			testkit.Until(t, func() bool { return count(t, db, sql) >= partitions }, code)
			require.Equal(t, partitions, count(t, db, sql), code)
		}
	}
	require.Equal(t, 1, count(t, h.customerDB, `select count(*) from profile`))
	require.Len(t, h.box.Messages(), 1)
}
