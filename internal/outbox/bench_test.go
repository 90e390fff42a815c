package outbox

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
)

func BenchmarkAdd(b *testing.B) {
	o, pool := newOutbox(b), newDatabase(b)
	_, err := pool.Exec(b.Context(), `create table business (id bigint generated always as identity primary key, v text)`)
	require.NoError(b, err)
	payload := []byte(`{"v":"` + strings.Repeat("x", 292) + `"}`)
	ctx := b.Context()
	for _, c := range []struct {
		name string
		add  func(pgx.Tx, event.Event) error
	}{
		{"without event", func(pgx.Tx, event.Event) error { return nil }},
		{"with event", func(tx pgx.Tx, e event.Event) error { return writers["add"](ctx, o, tx, e) }},
		{"over an event bus", func(tx pgx.Tx, e event.Event) error { return writers["event bus"](ctx, o, tx, e) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
					if _, err := tx.Exec(ctx, `insert into business (v) values ('x')`); err != nil {
						return err
					}
					e := newEvent(fmt.Sprintf("%d-%d", time.Now().UnixNano(), i))
					e.Data = payload
					return c.add(tx, e)
				})
				require.NoError(b, err)
			}
		})
	}
}
