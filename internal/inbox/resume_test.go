package inbox_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

func (c *clinic) copies() *[]string {
	var copied []string
	c.Host.Copy = func(_ context.Context, _ pgx.Tx, l deadletter.Letter) error {
		copied = append(copied, l.Class+" "+l.Code)
		return nil
	}
	return &copied
}

// Key a waits with version 3, which is sick, and 4. No earlier version is missing.
func newParked(t *testing.T, configure func(*inbox.Config)) (*clinic, []event.Event) {
	t.Helper()
	c := newClinic(t, 200, configure)
	come := []event.Event{v("a", 1), sick("a", 3, "bad"), v("a", 4), v("a", 2)}
	c.deliver(t, come...)
	require.Equal(t, []string{"version_gap 3", "parked_behind 4"}, c.waiting(t))
	return c, []event.Event{come[0], come[3], come[1], come[2]}
}

func TestAParkedEventIsTriedInRounds(t *testing.T) {
	t.Parallel()
	c, a := newParked(t, func(cfg *inbox.Config) { cfg.MaxAttempts = 3 })
	copied := c.copies()
	c.fall("bad")
	for range 2 {
		c.resume(t)
		require.Equal(t, []string{"version_gap 3", "parked_behind 4"}, c.waiting(t))
	}
	require.Empty(t, *copied)
	c.resume(t)
	require.Equal(t, []string{"unknown handler_failed"}, *copied)
	require.Equal(t, []string{"handler_failed 3", "parked_behind 4"}, c.waiting(t))
	require.Equal(t, 1+3, c.Count(t, `select attempts from dead_letter where version = 3`), "parked, and three rounds")
	c.heal()
	c.resume(t)
	require.Equal(t, []string{"handler_failed 3", "parked_behind 4"}, c.waiting(t))
	require.Equal(t, []string{"applied"}, c.replay(t, deadletter.Filter{Code: inbox.CodeHandlerFailed}))
	c.resume(t)
	c.requireEffects(t, a...)
	c.requireNothingWaits(t)
	require.Equal(t, []string{"inbox failed", "ana applied", "inbox applied"}, c.List(t,
		`select operator || ' ' || (detail ->> 'outcome') from operator_action order by id`))
}

func TestARoundIsOneDeed(t *testing.T) {
	t.Parallel()
	c, _ := newParked(t, nil)
	c.resume(t)
	c.requireNothingWaits(t)
	found, err := audit.Find(t.Context(), c.Pool, audit.Filter{})
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.EqualValues(t, 2, found[0].Count)
}

func TestAParkedEventThatCanNeverBeHandled(t *testing.T) {
	t.Parallel()
	refused := errors.New("breaks the contract")
	for name, s := range map[string]struct {
		spoil func(*clinic, *error)
		code  string
	}{
		"its handler": {
			func(c *clinic, _ *error) { c.sick.Store(&map[string]error{"bad": inbox.Permanent(errSick)}) },
			inbox.CodeHandlerFailed,
		},
		"its contract": {
			func(_ *clinic, contract *error) { *contract = inbox.PermanentAs("schema_violation", refused) },
			"schema_violation",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var contract error
			c, a := newParked(t, func(cfg *inbox.Config) {
				cfg.MaxAttempts = 3
				cfg.Validate = func(event.Event) error { return contract }
			})
			copied := c.copies()
			s.spoil(c, &contract)
			c.resume(t)
			require.Equal(t, []string{"permanent " + s.code}, *copied)
			require.Equal(t, []string{s.code + " 3", "parked_behind 4"}, c.waiting(t))
			contract = nil
			c.heal()
			require.Equal(t, []string{"applied"}, c.replay(t, deadletter.Filter{Code: s.code}))
			c.resume(t)
			c.requireEffects(t, a...)
		})
	}
}

func TestEveryStatementOfARoundHasADeadline(t *testing.T) {
	t.Parallel()
	c, _ := newParked(t, nil)
	c.Config.Pool = pgtest.Bounded(t, c.Pool)
	c.open(t)
	c.sick.Store(&map[string]error{"bad": failure.AsTransient(errSick)})
	require.ErrorIs(t, c.replayer.ResumeRound(t.Context()), errSick)
	require.Equal(t, []string{"version_gap 3", "parked_behind 4"}, c.waiting(t))
	c.fall("bad")
	c.resume(t)
	require.Equal(t, []string{"handler_failed 3", "parked_behind 4"}, c.waiting(t))
}

func TestAParkedEventThatEndsItsProcess(t *testing.T) {
	t.Parallel()
	c, _ := newParked(t, func(cfg *inbox.Config) { cfg.MaxAttempts = 3 })
	copied := c.copies()
	deaths := 0
	handler := c.handler
	c.handler = func(m *message.Message) ([]*message.Message, error) {
		deaths++
		require.Equal(t, 1+deaths, c.Count(t, `select attempts from dead_letter where version = 3`))
		return handler(m)
	}
	for range 3 {
		c.open(t)
		ctx, die := context.WithCancel(t.Context())
		c.sick.Store(&map[string]error{"bad": errSick})
		kill := c.handler
		c.replayer = inbox.NewReplayer(c.in, func(m *message.Message) ([]*message.Message, error) {
			defer die()
			return kill(m)
		})
		before := c.Count(t, `select attempts from dead_letter where version = 3`)
		require.Error(t, c.replayer.ResumeRound(ctx))
		c.Exec(t, `update dead_letter set attempts = $1 where version = 3`, before+1)
	}
	c.open(t)
	c.resume(t)
	require.Empty(t, *copied, "another process may run it")
	c.Exec(t, `update dead_letter set failed_at = failed_at - interval '1 hour' where version = 3`)
	c.resume(t)
	require.Equal(t, 3, deaths)
	require.Equal(t, []string{"permanent process_died"}, *copied)
	require.Equal(t, []string{"process_died 3", "parked_behind 4"}, c.waiting(t))
	require.Equal(t, 1+deaths, c.Count(t, `select attempts from dead_letter where version = 3`))
}

func TestAParkedEventThatAnotherProcessRunsHasNotDied(t *testing.T) {
	t.Parallel()
	for _, statement := range []string{"begin isolation level read committed", "commit"} {
		t.Run(statement, func(t *testing.T) {
			t.Parallel()
			c, a := newParked(t, func(cfg *inbox.Config) { cfg.HandlerTimeout = testkit.WaitLimit })
			copied := c.copies()
			resuming := func(ctx context.Context, p party) error { return p.replayer.ResumeRound(ctx) }
			c.interleave(t, statement, resuming, resuming)
			require.Empty(t, *copied)
			require.Equal(t, 1, c.Count(t, `select count(*) from operator_action where subject = '1'`))
			c.resume(t)
			c.requireEffects(t, a...)
			c.requireNothingWaits(t)
		})
	}
}

func TestAnAttemptAtAParkedEventThatCannotBeRecordedIsNoDeath(t *testing.T) {
	t.Parallel()
	c, a := newParked(t, nil)
	copied := c.copies()
	storeCopy := c.Host.Copy
	c.fall("bad")
	away := errors.New("away")
	c.Host.Copy = func(context.Context, pgx.Tx, deadletter.Letter) error { return away }
	for range 2 {
		require.ErrorIs(t, c.replayer.ResumeRound(t.Context()), away)
	}
	require.Equal(t, 1, c.Count(t, `select attempts from dead_letter where version = 3`))
	c.Host.Copy = storeCopy
	c.resume(t)
	require.Equal(t, []string{"unknown handler_failed"}, *copied)
	c.heal()
	require.Equal(t, []string{"applied"}, c.replay(t, deadletter.Filter{Code: inbox.CodeHandlerFailed}))
	c.resume(t)
	c.requireEffects(t, a...)
}

func TestNoParkedEventIsCountedWhileAnotherEventRunsAlone(t *testing.T) { //nolint:paralleltest // it stops all others
	c, a := newParked(t, nil)
	c.Exec(t, `update inbox_owner set owner = 'a dead process'`)
	c.Exec(t, `insert into inbox_attempt (consumer, topic, partition, first_offset, last_offset, attempts)
		values ('test', 'topic-1', 0, $1, $1, 1)`, c.at)
	c.Config.MaxAttempts = 3
	c.open(t)
	running, end := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(end) })
	defer release()
	msgs := c.records(t, v("b", 1))
	ended := make(chan error, 2)
	go func() {
		_, err := c.in.BatchMiddleware(func(m *message.Message) ([]*message.Message, error) {
			close(running)
			<-end
			return c.handler(m)
		})(t.Context(), msgs)
		ended <- err
	}()
	<-running
	looked := newGate("select k.key, d.id, d.attempts")
	p := c.stopping(t, looked)
	go func() { ended <- p.replayer.ResumeRound(t.Context()) }()
	looked.awaitReached(t, ended)
	looked.let()
	testkit.Until(t, func() bool {
		return c.Count(t, `select count(*) from pg_stat_activity where datname = current_database()
			and state = 'idle' and query like '%select k.key, d.id, d.attempts%'`) > 0
	})
	require.Equal(t, 1, c.Count(t, `select attempts from dead_letter where version = 3`))
	release()
	require.NoError(t, <-ended)
	require.NoError(t, <-ended)
	require.ElementsMatch(t, append(ids(a...), msgs[0].UUID), c.List(t, `select event_id from ledger`))
	c.requireNothingWaits(t)
}

func TestAKeyThatCannotGoOnKeepsNoOtherWaiting(t *testing.T) {
	t.Parallel()
	c, a := newParked(t, nil)
	b := []event.Event{v("b", 1), v("b", 3), v("b", 2)}
	c.deliver(t, b...)
	c.sick.Store(&map[string]error{"bad": failure.AsTransient(errSick)})
	require.ErrorIs(t, c.replayer.ResumeRound(t.Context()), errSick)
	c.requireEffects(t, a[0], a[1], b[0], b[2], b[1])
	require.Equal(t, []string{"version_gap 3", "parked_behind 4"}, c.waiting(t))
	require.Equal(t, 1, c.Count(t, `select attempts from dead_letter where version = 3 and key = 'a'`))
	c.heal()
	c.resume(t)
	c.requireNothingWaits(t)
}

// An operator replays what it has parked.
func TestAConsumerThatIsStrictNoMore(t *testing.T) {
	t.Parallel()
	for _, order := range []inbox.Order{inbox.Unordered, inbox.Latest} {
		t.Run(string(order), func(t *testing.T) {
			t.Parallel()
			c := newClinic(t, 1, nil)
			c.fall("bad")
			a, b := []event.Event{sick("a", 1, "bad"), v("a", 2)}, []event.Event{v("b", 1), v("b", 3)}
			c.deliver(t, append(a, b...)...)
			c.Config.Order = order
			c.open(t)
			c.heal()
			c.resume(t)
			require.Equal(t, []inbox.Outcome{inbox.Applied}, c.deliver(t, v("b", 4)), "nothing is kept back")
			want := map[inbox.Order]string{inbox.Unordered: "applied", inbox.Latest: "stale"}
			require.Equal(t, []string{"applied", "applied", want[order]}, c.replay(t, deadletter.Filter{}))
			c.requireNothingWaits(t)
		})
	}
}
