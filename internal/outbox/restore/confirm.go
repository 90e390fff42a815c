package restore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/internal/outbox/window"
)

const raiseKeySQL = `
insert into public.outbox_key as k (topic, key, version) values ($1, $2, $3)
on conflict (topic, key) do update set version = greatest(k.version, excluded.version)`

// What was scheduled, and was added after the backup was taken, waits again in the restored database.
const forgetScheduledSQL = `delete from public.outbox_scheduled where name = $1`

const confirmSQL = `
update public.outbox_cursor set restored = null, compared = ` + incarnation + ` where name = $1`

// Confirm makes the database go on behind the events that it has lost: adopt, if there is one, brings back what each
// says, in the order of each key's versions, and the key's next number is the one after it. So consumers see no number
// twice and no gap, and a scheduled event that was added is not added again. Then the relay publishes again, within a
// second. It returns how many events were adopted.
//
// Call it with what [Lost] finds among all that the broker holds, while there are no writers: [CheckWriters] keeps
// services from writing.
func Confirm(
	ctx context.Context, tx pgx.Tx, lost []cloudevent.Event, adopt func(context.Context, pgx.Tx, cloudevent.Event) error,
) (adopted int, err error) {
	reached := map[window.Key]int64{}
	batch := &pgx.Batch{}
	for _, e := range lost {
		key := window.Key{Topic: e.Topic, Key: e.Key}
		if e.Version <= reached[key] {
			continue // it lies on the topic twice
		}
		if adopt != nil {
			if err := adopt(ctx, tx, e); err != nil {
				return adopted, fmt.Errorf("adopt event %s: %w", e.ID, err)
			}
		}
		reached[key] = e.Version
		adopted++
		if name := e.Extensions[outbox.HeaderScheduledName]; name != "" {
			batch.Queue(forgetScheduledSQL, name)
		}
	}
	for key, version := range reached {
		batch.Queue(raiseKeySQL, key.Topic, key.Key, version)
	}
	batch.Queue(confirmSQL, window.CursorName)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return adopted, fmt.Errorf("raise versions: %w", err)
	}
	return adopted, nil
}
