package outbox

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func TestScheduledEventsAreListedAndTakenBack(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		for name, due := range map[string]Due{
			"late": After(time.Hour), "overdue": After(-time.Minute), "soon": After(time.Minute),
		} {
			if err := o.Schedule(t.Context(), tx, name, due, newEvent("key of "+name)); err != nil {
				return err
			}
		}
		return nil
	}))
	list := func(topic, key string, limit int) (names []string) {
		found, err := Scheduled(t.Context(), pool, topic, key, limit)
		require.NoError(t, err)
		for _, e := range found {
			names = append(names, e.Name)
			require.Equal(t, e.Name == "overdue", e.OverdueSeconds > 0)
			require.Equal(t, "key of "+e.Name, e.Key)
		}
		return names
	}
	require.Equal(t, []string{"overdue", "soon", "late"}, list("", "", 10))
	require.Equal(t, []string{"overdue", "soon"}, list(testTopic, "", 2))
	require.Equal(t, []string{"late"}, list("", "key of late", 10))
	require.Empty(t, list("other", "", 10))

	require.Equal(t, "key of soon", cancel(t, pool, "soon").Key)
	require.Nil(t, cancel(t, pool, "soon"))
	require.Equal(t, []string{"overdue", "late"}, list("", "", 10))
}
