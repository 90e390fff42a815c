package outbox

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// BenchmarkAdd is one event in a transaction of its own, next to a transaction that writes one row without an event.
func BenchmarkAdd(b *testing.B) {
	o, pool := newOutbox(b), newDatabase(b)
	_, err := pool.Exec(b.Context(), `create table business (id bigint generated always as identity primary key, v text)`)
	require.NoError(b, err)
	payload := []byte(`{"v":"` + strings.Repeat("x", 292) + `"}`)
	for name, withEvent := range map[string]bool{"without event": false, "with event": true} {
		b.Run(name, func(b *testing.B) {
			for i := range b.N {
				err := pgx.BeginFunc(b.Context(), pool, func(tx pgx.Tx) error {
					if _, err := tx.Exec(b.Context(), `insert into business (v) values ('x')`); err != nil || !withEvent {
						return err
					}
					e := event(fmt.Sprintf("%d-%d", time.Now().UnixNano(), i))
					e.Data = payload
					_, err := o.Add(b.Context(), tx, e)
					return err
				})
				require.NoError(b, err)
			}
		})
	}
}
