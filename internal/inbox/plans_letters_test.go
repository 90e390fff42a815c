package inbox_test

import (
	"fmt"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
)

// An outage can leave many dead letters before the table has statistics.
func TestABatchReadsOnlyItsOwnDeadLetters(t *testing.T) {
	t.Parallel()
	b := fresh(t)
	b.Config.Order, b.Config.Batch = inbox.Strict, 5
	outcomes := map[inbox.Outcome]int{}
	b.Host.OnOutcome = func(_ event.Event, o inbox.Outcome) { outcomes[o]++ }
	session := b.onOneConnection(t)
	_, handle := b.handle(t, effect)
	handled := 0
	// batches of three keys that continue, of the key held for longest, and of another held key
	batches := func(n int) {
		for range n {
			handled++
			var msgs []*message.Message
			for _, key := range []string{"a", "b", "c", "held-0", fmt.Sprint("held-", handled)} {
				e := newEvent()
				if e.Key, e.Version = key, 1; len(key) == 1 {
					e.Version = int64(handled)
				}
				msgs = append(msgs, record(t, e, int64(handled)))
			}
			_, err := handle(t.Context(), msgs)
			require.NoError(t, err)
		}
	}
	letters(t, session, "held-0", 0, 0)
	batches(10)
	require.Equal(t, map[inbox.Outcome]int{inbox.Applied: 40, inbox.Parked: 10}, outcomes)
	const stored, asked = 5_000, 20
	letters(t, session, "held-' || n || '", 1, stored)
	letters(t, session, "held-0", stored+1, 2*stored)
	before := b.countReads(t, session)
	batches(asked)
	require.Less(t, b.countReads(t, session)-before, 60*asked)
	require.Equal(t, map[inbox.Outcome]int{inbox.Applied: 100, inbox.Parked: 50}, outcomes)
}

// countReads counts the rows of dead letters and keys that the session has read.
func (b *bundle) countReads(t *testing.T, session *pgxpool.Pool) int {
	t.Helper()
	_, err := session.Exec(t.Context(), `select pg_stat_force_next_flush()`)
	require.NoError(t, err)
	return b.Count(t, `
select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))
    + (select sum(idx_tup_read) from pg_stat_user_indexes where relname in ('dead_letter', 'inbox_key'))
from pg_stat_user_tables where relname in ('dead_letter', 'inbox_key')`)
}

func TestARoundPassesEachParkedKeyOnce(t *testing.T) {
	t.Parallel()
	b := fresh(t)
	b.Config.Order = inbox.Strict
	session := b.onOneConnection(t)
	const stuck, resumed = 100, 1_000
	letters(t, session, "a-' || n || '", 1, stuck)
	letters(t, session, "b-' || n || '", stuck+1, stuck+resumed)
	b.Exec(t, `update dead_letter set class = 'parked' where key_start like 'b%'`)
	before := b.countReads(t, session)
	replayer := inbox.NewReplayer(b.Inbox(t), muxOf(effect).HandleMessage)
	require.NoError(t, replayer.ResumeRound(t.Context()))
	require.Equal(t, resumed, b.Count(t, `select count(*) from dead_letter where attempts = 2`))
	require.Less(t, b.countReads(t, session)-before, 50*(stuck+resumed))
}

// letters stores dead letters without a version that hold their keys. The key may name its n.
func letters(t *testing.T, session *pgxpool.Pool, key string, from, to int) {
	t.Helper()
	_, err := session.Exec(t.Context(), fmt.Sprintf(`
insert into public.dead_letter (consumer, event_id, event_type, key, version, headers, payload, topic, partition,
    record_offset, class, code, error, attempts, first_failed_at, holds, remembered)
select 'test', 'old-' || n, 't.v1', convert_to('%s', 'UTF8'), 0, '[]', convert_to(n::text, 'UTF8'), 't', 0,
    n, 'unknown', 'handler_failed', '', 1, clock_timestamp(), true, true
from generate_series(%d, %d) as n`, key, from, to))
	require.NoError(t, err)
	_, err = session.Exec(t.Context(), `insert into public.inbox_key (consumer, key, version, parked_from)
select distinct 'test', convert_from(key, 'UTF8'), 0, 0 from public.dead_letter where holds on conflict do nothing`)
	require.NoError(t, err)
}
