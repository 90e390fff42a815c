package retention_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/inbox/retention"
	"example.com/twinbox/test/crashtest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

type job struct {
	DSN       string
	Noon      time.Duration
	Statement *crashtest.Statement
}

func init() { crashtest.Child(tidy) }

func tidy(j job) error {
	ctx := context.Background()
	cfg, err := pgxpool.ParseConfig(j.DSN)
	if err != nil {
		return err
	}
	cfg.ConnConfig.Tracer = j.Statement.Tracer()
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer pool.Close()
	janitor, err := retention.New(retention.Config{
		Pool: pool, Retention: day, Now: func() time.Time { return time.Now().Add(j.Noon) },
	})
	if err != nil {
		return err
	}
	_, err = janitor.Tidy(ctx)
	return err
}

func TestAJanitorThatDies(t *testing.T) {
	t.Parallel()
	const deaths, statements = 8, 26
	seed := uint64(rand.Uint32())
	t.Logf("seed %d", seed)
	for _, n := range rand.New(rand.NewPCG(seed, 0)).Perm(2 * statements)[:deaths] {
		at := &crashtest.Statement{Nth: 1 + n/2, After: n%2 == 1}
		t.Run(fmt.Sprintf("%d, after %t", at.Nth, at.After), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.split(t, 4)
			b.Exec(t, `drop table inbox_`+b.today.AddDate(0, 0, 7).Format("20060102"))
			ids := append(b.fill(t, -4, -4), b.fill(t, -1, -1)...)
			ids = append(ids, b.fill(t, 7, 7)...)
			ids = append(ids, "foreign")
			require.Equal(t, []string{"applied"}, b.outcomes(t, "foreign"))
			effects := b.Count(t, `select count(*) from ledger`)
			job := job{DSN: pgtest.DSN(b.Pool), Noon: b.noon, Statement: at}
			require.Equal(t, crashtest.Killed, crashtest.Start(t, job).Wait(t).Error())
			require.NotContains(t, b.outcomes(t, ids...), "applied")
			next := b.janitor(t, day)
			testkit.Until(t, func() bool { // the server may notice the death late
				b.tidy(t, next)
				return b.partitions(t) == 1+8+2
			})
			require.Equal(t, []string{"expired", "duplicate", "duplicate", "duplicate"}, b.outcomes(t, ids...))
			require.Equal(t, effects, b.Count(t, `select count(*) from ledger`))
		})
	}
}
