package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/test/testkit"
)

// clinic is a strict consumer whose handler fails for the values in sick.
type clinic struct {
	*bundle
	in       *inbox.Inbox
	replayer *inbox.Replayer
	handler  message.HandlerFunc
	at       int64
	sick     atomic.Pointer[map[string]error]

	mu   sync.Mutex // a delivery and a replay may end together
	seen []inbox.Outcome
}

var errSick = errors.New("no idea")

func newClinic(t *testing.T, batch int, configure func(*inbox.Config)) *clinic {
	t.Helper()
	c := &clinic{bundle: setup(t)}
	c.heal()
	c.handler = muxOf(func(ctx context.Context, tx pgx.Tx, e event.Event, d testData) error {
		if err := (*c.sick.Load())[d.Value]; err != nil {
			return err
		}
		return effect(ctx, tx, e, d)
	}).HandleMessage
	c.Config.Order, c.Config.MaxAttempts, c.Config.Batch = inbox.Strict, 1, batch
	c.Config.ResumeEvery = pollEvery
	c.Host.OnOutcome = func(_ event.Event, o inbox.Outcome) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.seen = append(c.seen, o)
	}
	if configure != nil {
		configure(&c.Config)
	}
	c.open(t)
	return c
}

func (c *clinic) open(t *testing.T) {
	t.Helper()
	c.in = c.Inbox(t)
	c.replayer = inbox.NewReplayer(c.in, c.handler)
}

func (c *clinic) fall(values ...string) {
	sick := make(map[string]error)
	for _, v := range values {
		sick[v] = errSick
	}
	c.sick.Store(&sick)
}

func (c *clinic) heal() { c.fall() }

func whole(t *testing.T, e event.Event, offset int64) *message.Message {
	t.Helper()
	m := e.Message()
	m.SetContext(event.WithOrigin(t.Context(), event.Origin{
		Group: "local.test", Topic: "topic-1", Offset: offset, Time: e.Time, Key: []byte(e.Key),
		Headers: event.MessageHeaders(m),
	}))
	return m
}

func (c *clinic) records(t *testing.T, events ...event.Event) []*message.Message {
	t.Helper()
	msgs := make([]*message.Message, len(events))
	for i, e := range events {
		msgs[i] = whole(t, e, c.at)
		c.at++
	}
	return msgs
}

func (c *clinic) deliver(t *testing.T, events ...event.Event) []inbox.Outcome {
	t.Helper()
	c.seen = nil
	_, err := c.in.BatchMiddleware(c.handler)(t.Context(), c.records(t, events...))
	require.NoError(t, err)
	return c.seen
}

func (c *clinic) resume(t *testing.T) {
	t.Helper()
	require.NoError(t, c.replayer.ResumeRound(t.Context()))
}

func (c *clinic) replay(t *testing.T, f deadletter.Filter, options ...func(*inbox.Options)) []string {
	t.Helper()
	results := []string{}
	o := inbox.Options{Change: audit.Change{By: "ana", Reason: "fixed"}, OnResult: func(r inbox.Result) {
		results = append(results, strings.TrimSpace(r.Outcome+" "+r.Code))
	}}
	for _, set := range options {
		set(&o)
	}
	require.NoError(t, c.replayer.Replay(t.Context(), f, o))
	return results
}

func forced(o *inbox.Options) { o.Force = true }

func gapAccepted(o *inbox.Options) { o.AcceptGap = true }

func dry(o *inbox.Options) { o.DryRun = true }

func results(n int, result string) []string { return slices.Repeat([]string{result}, n) }

var byAna = inbox.Options{Change: audit.Change{By: "ana"}}

var discarding = audit.Change{By: "ben", Reason: "not needed"}

func (c *clinic) discard(t *testing.T, f deadletter.Filter) {
	t.Helper()
	_, err := deadletter.NewStore(c.Pool).Discard(t.Context(), f, discarding)
	require.NoError(t, err)
}

func (c *clinic) edit(t *testing.T, eventID string, e deadletter.Edit) {
	t.Helper()
	id := c.Count(t, `select id from dead_letter where event_id = $1`, eventID)
	store := deadletter.NewStore(c.Pool)
	l, _, err := store.Get(t.Context(), int64(id), false)
	require.NoError(t, err)
	e.EditedAt = l.EditedAt
	_, err = store.Edit(t.Context(), l.ID, e, audit.Change{By: "ben"})
	require.NoError(t, err)
}

func sick(key string, version int64, value string) event.Event {
	return payload(v(key, version), fmt.Sprintf(`{"value":%q}`, value))
}

func ids(events ...event.Event) []string {
	list := make([]string, len(events))
	for i, e := range events {
		list[i] = e.ID
	}
	return list
}

func (c *clinic) requireEffects(t *testing.T, events ...event.Event) {
	t.Helper()
	require.Equal(t, ids(events...), c.List(t, `select event_id from ledger order by n`))
}

func (b *bundle) waiting(t *testing.T) []string {
	t.Helper()
	return b.List(t, `select code || ' ' || version from dead_letter where state = 'waiting' order by version, id`)
}

func (b *bundle) requireNothingWaits(t *testing.T) {
	t.Helper()
	require.Empty(t, b.waiting(t))
	require.Zero(t, b.Count(t, `select count(*) from inbox_key where parked_from is not null`))
}

// gate blocks the first statement that begins or ends with a text, until it is opened.
type gate struct {
	text          string
	stopped       atomic.Bool
	reached, open chan struct{}
}

func newGate(text string) *gate {
	return &gate{text: text, reached: make(chan struct{}), open: make(chan struct{})}
}

func (g *gate) let() {
	select {
	case <-g.open:
	default:
		close(g.open)
	}
}

func (g *gate) awaitReached(t *testing.T, ended <-chan error) {
	t.Helper()
	select {
	case <-g.reached:
	case err := <-ended:
		require.FailNow(t, "the statement was not reached", "%q: %v", g.text, err)
	}
}

func (g *gate) meet(sql string) {
	sql = strings.TrimSpace(sql)
	isMeant := strings.HasPrefix(sql, g.text) || strings.HasSuffix(sql, g.text)
	if isMeant && g.stopped.CompareAndSwap(false, true) {
		close(g.reached)
		<-g.open
	}
}

func (g *gate) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	g.meet(q.SQL)
	return ctx
}

func (*gate) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (g *gate) TraceBatchStart(ctx context.Context, _ *pgx.Conn, b pgx.TraceBatchStartData) context.Context {
	for _, q := range b.Batch.QueuedQueries {
		g.meet(q.SQL)
	}
	return ctx
}

func (*gate) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (*gate) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

type party struct {
	config   inbox.Config
	in       *inbox.Inbox
	replayer *inbox.Replayer
	store    *deadletter.Store
}

func (c *clinic) stopping(t *testing.T, g *gate) party {
	t.Helper()
	cfg := c.Pool.Config()
	cfg.ConnConfig.Tracer = g
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		g.let() // a pool that is closed waits for its connections
		pool.Close()
	})
	ownConfig := c.Config
	ownConfig.Pool = pool
	in, err := inbox.New(ownConfig)
	require.NoError(t, err)
	return party{ownConfig, in, inbox.NewReplayer(in, c.handler), deadletter.NewStore(pool)}
}

type action func(ctx context.Context, p party) error

func (c *clinic) delivering(t *testing.T, events ...event.Event) action {
	msgs := c.records(t, events...)
	return func(ctx context.Context, p party) error {
		_, err := p.in.BatchMiddleware(c.handler)(ctx, msgs)
		return err
	}
}

func replayingDead(ctx context.Context, p party) error {
	return p.replayer.Replay(ctx, deadletter.Filter{Code: inbox.CodeHandlerFailed}, byAna)
}

func discardingDead(ctx context.Context, p party) error {
	_, err := p.store.Discard(ctx, deadletter.Filter{Code: inbox.CodeHandlerFailed}, discarding)
	return err
}

// interleave stops the first action before the statement with the text, until the second action waits for its locks or
// has ended.
func (c *clinic) interleave(t *testing.T, text string, first, second action) {
	t.Helper()
	g := newGate(text)
	one, two := c.stopping(t, g), party{c.Config, c.in, c.replayer, deadletter.NewStore(c.Pool)}
	ended := make(chan error, 2)
	go func() { ended <- first(t.Context(), one) }()
	g.awaitReached(t, ended)
	go func() { ended <- second(t.Context(), two) }()
	testkit.Until(t, func() bool {
		return len(ended) > 0 || c.Count(t, `select count(*) from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock'`) > 0
	})
	g.let()
	require.NoError(t, <-ended)
	require.NoError(t, <-ended)
}
