package outbox

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// LockKey locks a key of a topic until the caller's transaction ends, and returns the key's version: the number of its
// last event, 0 without one. It waits for the transaction that holds the key. Its errors are the database's.
//
// A command calls it first and reads its aggregate then, in a statement of its own: both are as of the lock.
func LockKey(ctx context.Context, tx pgx.Tx, topic, key string) (version int64, err error) {
	if err := tx.QueryRow(ctx, lockKeySQL, topic, key).Scan(&version); err != nil {
		return 0, fmt.Errorf("lock key: %w", err)
	}
	return version, nil
}

// "do nothing" would return no row to the second of two that make one: "do update" returns its newest version.
const lockKeySQL = `
with known as (
    select version from public.outbox_key where topic = $1 and key = $2 for no key update
), made as (
    insert into public.outbox_key as k (topic, key, version)
    select $1, $2, 0 where not exists (select from known)
    on conflict (topic, key) do update set version = k.version
    returning version
)
select version from known union all select version from made`
