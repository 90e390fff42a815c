package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/outbox"
)

type memoryLog struct {
	mu         sync.Mutex
	partitions int32
	records    map[int32][]*message.Message
	start      map[int32]int64
	clock      time.Time
	tick       time.Duration                  // between two records
	mix        func(order []int)              // of a call; each key keeps its order
	before     func(m *message.Message) error // before an append; its error is the message's
	after      func(m *message.Message) error // likewise; the record is on the log
	repeated   bool
	dead       bool // the sender: nothing more is written
	down       error
	asked      func(p int32) error
}

func newMemoryLog(partitions int32) *memoryLog {
	return &memoryLog{
		partitions: partitions, records: map[int32][]*message.Message{}, start: map[int32]int64{},
		clock: time.Now().Truncate(time.Millisecond), tick: time.Millisecond,
	}
}

func (*memoryLog) Close() error { return nil }

func (*memoryLog) Publish(string, ...*message.Message) error {
	panic("the relay asks for acknowledgements")
}

func (g *memoryLog) PublishAcked(_ context.Context, topic string, msgs ...*message.Message) (bool, error) {
	order := make([]int, len(msgs))
	for i := range order {
		order[i] = i
	}
	if g.mix != nil {
		g.mix(order)
		byKey := map[string][]int{}
		for i, m := range msgs {
			byKey[m.Metadata[event.KeyMetadata]] = append(byKey[m.Metadata[event.KeyMetadata]], i)
		}
		for i, n := range order {
			key := msgs[n].Metadata[event.KeyMetadata]
			order[i], byKey[key] = byKey[key][0], byKey[key][1:]
		}
	}
	partial := &partialError{Failed: map[int]error{}}
	failed := map[string]bool{}
	for _, i := range order {
		key := msgs[i].Metadata[event.KeyMetadata]
		err := errNotSent
		if !failed[key] {
			err = g.send(topic, msgs[i])
		}
		if err != nil {
			partial.Failed[i], failed[key] = err, true
		}
	}
	if len(partial.Failed) > 0 {
		return g.repeated, partial
	}
	return g.repeated, nil
}

func shuffleBy(rng *rand.Rand) func(order []int) {
	return func(order []int) { rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] }) }
}

var errNotSent = errors.New("not sent")

func (g *memoryLog) send(topic string, m *message.Message) error {
	if g.dead {
		return errNotSent
	}
	if g.before != nil {
		if err := g.before(m); err != nil {
			return err
		}
	}
	origin := g.append(topic, m)
	if g.after != nil {
		if err := g.after(m); err != nil {
			return err
		}
	}
	m.SetContext(event.WithOrigin(m.Context(), origin))
	return nil
}

func (g *memoryLog) append(topic string, m *message.Message) event.Origin {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.clock = g.clock.Add(g.tick)
	p := g.PartitionOf(m.Metadata[event.KeyMetadata], g.partitions)
	origin := event.Origin{
		Topic: topic, Partition: p, Offset: g.start[p] + int64(len(g.records[p])), Time: g.clock,
		Key: []byte(m.Metadata[event.KeyMetadata]),
	}
	written := m.Copy()
	written.SetContext(event.WithOrigin(context.Background(), origin))
	g.records[p] = append(g.records[p], written)
	return origin
}

func (*memoryLog) PartitionOf(key string, partitions int32) int32 {
	return int32(key[0]-'a') % partitions
}

func (g *memoryLog) EachEnd(
	_ context.Context, topics []string, each func(string, int32, int64, int64, error),
) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.down != nil {
		return g.down
	}
	for _, topic := range topics {
		for _, n := range rand.Perm(int(g.partitions)) {
			p := int32(n)
			var err error
			if g.asked != nil {
				err = g.asked(p)
			}
			each(topic, p, g.start[p], g.start[p]+int64(len(g.records[p])), err)
		}
	}
	return nil
}

func (g *memoryLog) ReadLog(
	_ context.Context, _ string, p int32, from, to int64,
) ([]*message.Message, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	from, to = max(from-g.start[p], 0), min(to-g.start[p], int64(len(g.records[p])))
	if from >= to {
		return nil, nil
	}
	return g.records[p][from:min(to, from+2)], nil
}

func (g *memoryLog) cut(p int32, end int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.records[p] = g.records[p][:min(end-g.start[p], int64(len(g.records[p])))]
}

func (g *memoryLog) expire(p int32, start int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.records[p], g.start[p] = g.records[p][start-g.start[p]:], start
}

func (g *memoryLog) end(p int32) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.start[p] + int64(len(g.records[p]))
}

// failing fails the records with that header.
func failing(header, value string, err error) func(*message.Message) error {
	return func(m *message.Message) error {
		if m.Metadata[header] == value {
			return err
		}
		return nil
	}
}

// silent is a partition that does not tell its end.
func silent(partition int32) func(int32) error {
	return func(p int32) error {
		if p == partition {
			return errNotSent
		}
		return nil
	}
}

// strictConsumer never goes back.
type strictConsumer struct {
	log     *memoryLog
	next    map[int32]int64
	last    map[int32]time.Time
	applied map[string]bool
	version map[string]int64
	parked  map[string]map[int64]string
}

func newStrictConsumer(g *memoryLog) *strictConsumer {
	return &strictConsumer{
		log: g, next: map[int32]int64{}, last: map[int32]time.Time{}, applied: map[string]bool{},
		version: map[string]int64{}, parked: map[string]map[int64]string{},
	}
}

func (c *strictConsumer) consume() {
	for p := range c.log.partitions {
		if c.next[p] > c.log.end(p) {
			c.next[p] = 0
		}
		c.readTo(p, c.log.end(p))
	}
}

func (c *strictConsumer) readTo(p int32, end int64) {
	for ; c.next[p] < min(end, c.log.end(p)); c.next[p]++ {
		records, _ := c.log.ReadLog(context.Background(), "", p, c.next[p], c.next[p]+1)
		if len(records) == 1 {
			c.apply(records[0])
		}
	}
}

func (c *strictConsumer) apply(m *message.Message) {
	key, id := m.Metadata[event.KeyMetadata], m.UUID
	version, _ := strconv.ParseInt(m.Metadata[event.HeaderVersion], 10, 64)
	switch {
	case c.applied[id]:
		if version == c.version[key]+1 {
			c.version[key]++
		}
	case version <= c.version[key]: // stale
	case version > c.version[key]+1:
		if c.parked[key] == nil {
			c.parked[key] = map[int64]string{}
		}
		c.parked[key][version] = id
		return
	default:
		c.applied[id], c.version[key] = true, version
	}
	for id, waits := c.parked[key][c.version[key]+1]; waits; id, waits = c.parked[key][c.version[key]+1] {
		delete(c.parked[key], c.version[key]+1)
		c.applied[id] = true
		c.version[key]++
	}
}

type world struct {
	testing.TB
	outbox   *outbox.Outbox
	pool     *pgxpool.Pool
	log      *memoryLog
	consumer *strictConsumer
	cfg      Config
	*leader
	before *leader // its session is the next one's: a new backend per leader is slow
}

func newWorld(t testing.TB, partitions int32) *world {
	t.Helper()
	g := newMemoryLog(partitions)
	w := &world{TB: t, outbox: newOutbox(t), pool: newDatabase(t), log: g, consumer: newStrictConsumer(g)}
	w.cfg = testRelayConfig(t, w.pool, g)
	w.cfg.Log = slog.New(slog.NewTextHandler(testWriter{t}, nil))
	w.cfg.landWithin, w.cfg.lookAgain, w.cfg.pointEvery = time.Nanosecond, time.Nanosecond, time.Nanosecond
	w.cfg.askEvery = time.Nanosecond
	w.cfg.Topics = []string{testTopic}
	w.cfg.patience = time.Minute
	return w
}

func (w *world) add(keys ...string) {
	w.Helper()
	for _, key := range keys {
		commit(w, w.outbox, w.pool, newEvent(key))
	}
}

func (w *world) lead() {
	w.Helper()
	var idle *pgx.Conn
	if w.before != nil {
		idle = w.before.conn
	}
	w.before, w.leader = w.leader, leadOn(w, w.cfg, idle)
}

func (w *world) settle() {
	w.Helper()
	for range 3 { // the ends are compared between rounds
		w.ends.lookAt = time.Time{}
		w.drain(w)
	}
}

func (w *world) leadAndSettle() {
	w.Helper()
	w.lead()
	w.settle()
}

// produce adds events and publishes them.
func (w *world) produce(keys ...string) {
	w.Helper()
	w.add(keys...)
	w.settle()
}

func (w *world) retryParked() {
	w.Helper()
	w.exec(`update outbox_parked set retry_at = clock_timestamp()`)
	w.flushAt = time.Time{}
	w.settle()
}

func (w *world) crashAt(n int, isWritten bool) {
	crash := func(*message.Message) error {
		if n--; n > 0 {
			return nil
		}
		depose(w, w.pool)
		w.log.dead = true
		return errors.New("the relay is dead")
	}
	if isWritten {
		w.log.after = crash
	} else {
		w.log.before = crash
	}
}

func (w *world) die() {
	w.Helper()
	for range 20 {
		w.ends.lookAt, w.flushAt = time.Time{}, time.Time{}
		if _, err := w.round(w.Context()); err != nil {
			w.log.before, w.log.after, w.log.dead = nil, nil, false
			return
		}
	}
	require.FailNow(w, "the leader lives")
}

var backedUp = []string{
	"outbox", "outbox_key", "outbox_cursor", "outbox_point", "outbox_lost", "outbox_held", "outbox_parked",
	"outbox_discarded",
}

func (w *world) backUp(name string) {
	w.Helper()
	require.NoError(w, pgx.BeginFunc(w.Context(), w.pool, func(tx pgx.Tx) error {
		sql := "drop schema if exists " + name + " cascade; create schema " + name + ";"
		for _, table := range backedUp {
			sql += fmt.Sprintf("create table %s.%s as table public.%[2]s;", name, table)
		}
		sql += "create table " + name + ".head as " +
			"select coalesce(pg_sequence_last_value('public.outbox_position_seq'), 0) as n"
		_, err := tx.Exec(w.Context(), sql)
		return err
	}))
}

func (w *world) goBack(name string) {
	w.Helper()
	require.NoError(w, pgx.BeginFunc(w.Context(), w.pool, func(tx pgx.Tx) error {
		sql := ""
		for _, table := range backedUp {
			sql += fmt.Sprintf("delete from public.%s; insert into public.%[1]s overriding system value select * from %s.%[1]s;",
				table, name)
		}
		sql += "select setval('public.outbox_position_seq', greatest(n, 1), n > 0) from " + name + ".head"
		_, err := tx.Exec(w.Context(), sql)
		return err
	}))
}

// lose adds events that are sent, and takes the database back to before them.
func (w *world) lose(keys ...string) {
	w.Helper()
	w.backUp("backup")
	w.produce(keys...)
	w.goBack("backup")
}

func (w *world) exec(sql string, args ...any) {
	w.Helper()
	execSQL(w, w.pool, sql, args...)
}

func (w *world) count(sql string, args ...any) int64 {
	w.Helper()
	return number(w, w.pool, sql, args...)
}

const ill = `select count(*) from outbox_cursor, jsonb_each(ends) e where e.value ? 'from'`

func (w *world) requireWhole() {
	w.Helper()
	require.Zero(w, w.count(ill), "all is healed")
	require.Equal(w, int64(0), w.count(`select count(*) from outbox_held`))
	w.consumer.consume()
	rows, err := w.pool.Query(w.Context(), `
		select event_id::text, key, version from outbox union select event_id, key, version from outbox_lost order by 2, 3`)
	require.NoError(w, err)
	var id, key string
	var version int64
	seen := map[string]bool{}
	_, err = pgx.ForEachRow(rows, []any{&id, &key, &version}, func() error {
		require.True(w, w.consumer.applied[id], "version %d of key %s is applied", version, key)
		name := fmt.Sprint(key, version)
		require.False(w, seen[name], "version %d of key %s is there once", version, key)
		seen[name] = true
		return nil
	})
	require.NoError(w, err)
	for key, parked := range w.consumer.parked {
		require.Empty(w, parked, "key %s waits", key)
	}
	for p, records := range w.log.records { // a consumer that begins now gets each key in order
		if w.log.start[p] > 0 {
			continue // its first records have expired
		}
		next, last := map[string]int64{}, map[string]int64{}
		for _, m := range records {
			e, err := readRecord(m)
			if err != nil {
				continue // another producer's
			}
			last[e.Key] = max(last[e.Key], e.Version)
			if e.Version == next[e.Key]+1 {
				next[e.Key]++
			}
		}
		require.Equal(w, last, next, "partition %d", p)
	}
}
