package outbox

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRunRefusesBadConfigurationAtOnce(t *testing.T) {
	t.Parallel()
	_, err := NewRelay(RelayConfig{PublishTimeout: time.Minute, BatchSize: -1, Retention: time.Second})
	var refused *CheckError
	require.ErrorAs(t, err, &refused)
	for _, code := range []string{"database", "publisher", "publish_timeout", "batch_size", "retention", "max_silence"} {
		require.True(t, refused.Has(code), code)
	}
	require.ErrorContains(t, err, "outbox cannot start: database: ")
}

func TestRunRefusesServersOnWhichEventsWouldBeLost(t *testing.T) {
	t.Parallel()
	for code, sql := range map[string]string{
		"synchronous_commit": `do $$ begin
			execute format('alter database %I set synchronous_commit = off', current_database()); end $$`,
		"sequence_cache":     `alter sequence outbox_position_seq cache 20`,
		"sequence_increment": `alter sequence outbox_position_seq increment 2`,
		"sequence_range":     `alter sequence outbox_position_seq cycle`,
		"xid_default":        `alter table outbox alter xid drop default`,
		"unlogged":           `alter table outbox_held set unlogged`,
		"schema":             `delete from outbox_cursor`,
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			pool := newDatabase(t)
			_, err := pool.Exec(t.Context(), sql)
			require.NoError(t, err)
			r, err := NewRelay(testRelayConfig(t, pool, newLedger()))
			require.NoError(t, err)
			var refused *CheckError
			require.ErrorAs(t, r.Run(t.Context()), &refused)
			require.True(t, refused.Has(code), refused.Error())
			require.Len(t, refused.Problems, 1)
		})
	}
}
