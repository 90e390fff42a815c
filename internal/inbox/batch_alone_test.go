package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
)

func TestABatchComesToWhatItsEventsComeToAlone(t *testing.T) {
	t.Parallel()
	shared := setup(t)
	rapid.Check(t, func(rt *rapid.T) {
		events := rapid.SliceOfN(rapid.Custom(drawEvent), 1, 12).Draw(rt, "events")
		configure := drawConfig(rt)
		alone := shared.play(t, 0, configure, events)
		batch := rapid.IntRange(2, 12).Draw(rt, "batch")
		require.Equal(rt, alone, shared.play(t, batch, configure, events))
	})
}

// Few ids, keys and versions, so that they meet. The inbox may have forgotten some ids' times.
func drawEvent(t *rapid.T) event.Event {
	n := rapid.IntRange(0, 9).Draw(t, "id")
	e := named(fmt.Sprintf("order-%d", n), rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key"))
	if n > 5 {
		e.ID = fmt.Sprintf("01940000-%04d-7000-8000-000000000000", 2000*(n-6)) // from January 2025 on
	}
	if n%4 == 3 {
		e.Time = e.Time.AddDate(-3, 0, 0)
	}
	e.Version = rapid.SampledFrom([]int64{0, 1, 2, 3, 4, 2000}).Draw(t, "version")
	e.Data = []byte(rapid.SampledFrom([]string{
		`{"value":"a"}`, `{"value":"a"}`, `{"value":"b"}`, `{"value":"bad"}`, `{"value":"panic"}`, `{"value":[]}`, "",
	}).Draw(t, "data"))
	return e
}

func drawConfig(t *rapid.T) func(*inbox.Config) {
	order := rapid.SampledFrom([]inbox.Order{inbox.Unordered, inbox.Latest, inbox.Strict}).Draw(t, "order")
	onConflict := rapid.SampledFrom([]inbox.ConflictMode{inbox.ConflictError, inbox.ConflictWarn}).Draw(t, "on conflict")
	return func(c *inbox.Config) { c.Order, c.OnConflict, c.MaxAttempts = order, onConflict, 1 }
}

func (b *bundle) play(
	t *testing.T, batch int, configure func(*inbox.Config), events []event.Event,
) (told []string) {
	t.Helper()
	b = b.again(t)
	b.Exec(t, `update inbox_horizon set remembers_from = '2025-01-01'`)
	b.Config.Batch = max(batch, 1)
	configure(&b.Config)
	also := b.Host.OnOutcome
	b.Host.OnOutcome = func(e event.Event, o inbox.Outcome) {
		told = append(told, e.ID+" "+string(o))
		if also != nil {
			also(e, o)
		}
	}
	b.run(t, batch, func(ctx context.Context, tx pgx.Tx, e event.Event, data testData) error {
		switch data.Value {
		case "bad":
			return errors.New("no idea")
		case "panic":
			panic("no idea")
		}
		return effect(ctx, tx, e, data)
	}, records(t, t.Context(), events...))
	for _, sql := range []string{
		`select 'effect ' || event_id from ledger order by n`,
		`select concat_ws(' ', 'letter', event_id, convert_from(key, 'UTF8'), version, code, class, attempts, holds,
			remembered, convert_from(payload, 'UTF8')) from dead_letter
			order by holds, case when holds then id end, event_id, payload`,
		`select concat_ws(' ', 'key', key, version, parked_from) from inbox_key order by key`,
		`select concat_ws(' ', 'applied', event_id, payload_hash) from inbox order by event_id`,
	} {
		told = append(told, b.List(t, sql)...)
	}
	return told
}
