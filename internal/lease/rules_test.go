package lease

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

func TestRowsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t, Settings{})
	b.add(t, "e1")
	for change, allowed := range map[string]bool{
		`state = 'pending'`:                                              true,
		`state = 'pending', token = gen_random_uuid()`:                   true,
		`state = 'claimed', token = gen_random_uuid()`:                   true,
		`state = 'submitting', token = gen_random_uuid()`:                true,
		`state = 'done', ended_at = now()`:                               true,
		`state = 'failed', ended_at = now(), token = gen_random_uuid()`:  true,
		`state = 'skipped', ended_at = now()`:                            true,
		`state = 'uncertain', ended_at = now()`:                          true,
		`state = 'claimed'`:                                              false,
		`state = 'submitting'`:                                           false,
		`state = 'done'`:                                                 false,
		`state = 'failed'`:                                               false,
		`state = 'skipped'`:                                              false,
		`state = 'uncertain'`:                                            false,
		`ended_at = now()`:                                               false,
		`state = 'claimed', token = gen_random_uuid(), ended_at = now()`: false,
		`state = 'sent', ended_at = now()`:                               false,
		`state = ''`:                                                     false,
		`handler = ''`:                                                   false,
		`event_id = ''`:                                                  false,
	} {
		tx, err := b.pool.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), `update lease set `+change)
		if allowed {
			require.NoError(t, err, change)
		} else {
			refused, known := errors.AsType[*pgconn.PgError](err)
			require.True(t, known && refused.Code == "23514", "%s: %v", change, err)
		}
		require.NoError(t, tx.Rollback(t.Context()))
	}
}
