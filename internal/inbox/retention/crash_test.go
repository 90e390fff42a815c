//go:build faults

package retention_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/fault"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/retention"
	"example.com/twinbox/test/crashtest"
	"example.com/twinbox/test/inboxtest"
	"example.com/twinbox/test/pgtest"
)

// job is what a process of its own, this test binary called again, is told to do: be a janitor for one round.
type job struct {
	DSN     string
	CrashAt string // crash point
}

func init() { crashtest.Child(tidy) }

// tidy is the process's side.
func tidy(j job) error {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, j.DSN)
	if err != nil {
		return err
	}
	defer pool.Close()
	if j.CrashAt != "" {
		fault.ArmNth(j.CrashAt, 1, crashtest.Die)
	}
	janitor, err := retention.New(retention.Config{Pool: pool, Retention: day, Lease: time.Millisecond})
	if err != nil {
		return err
	}
	_, err = janitor.Tidy(ctx)
	return err
}

// A janitor that is killed anywhere leaves an inbox that still knows what it says it knows, and the next one goes on.
func TestAJanitorThatDies(t *testing.T) {
	t.Parallel()
	for _, point := range []string{
		"create.before", "create.in_tx", "horizon.before", "horizon.after", "drop.before", "drop.after",
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.split(t, 4)
			b.Exec(t, `drop table inbox_`+b.today.AddDate(0, 0, 7).Format("20060102"))
			in := b.Inbox(t)
			ids := []string{
				inboxtest.IDAt(b.today.AddDate(0, 0, -4)), inboxtest.IDAt(b.today.AddDate(0, 0, -1)),
				inboxtest.IDAt(b.today.AddDate(0, 0, 7)), "foreign",
			}
			process := func() (outcomes []inbox.Outcome) {
				for _, id := range ids {
					o, _ := in.Process(t.Context(), id, b.Note(id))
					outcomes = append(outcomes, o)
				}
				return outcomes
			}
			process()
			b.Exec(t, `update inbox_janitor set due_at = 'epoch'`)
			job := job{DSN: pgtest.DSN(b.Pool), CrashAt: "janitor." + point}
			require.Equal(t, crashtest.Killed, crashtest.Start(t, job).Wait(t).Error())
			require.NotContains(t, process(), inbox.Applied)
			job.CrashAt = ""
			require.NoError(t, crashtest.Start(t, job).Wait(t))
			require.Equal(t, []inbox.Outcome{
				inbox.Expired, inbox.Duplicate, inbox.Duplicate, inbox.Duplicate,
			}, process())
			require.Equal(t, 1+8+2, b.partitions(t))
			require.Equal(t, 4, b.Count(t, `select count(*) from ledger`))
		})
	}
}
