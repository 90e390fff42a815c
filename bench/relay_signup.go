package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

// writers are the kinds of signup transaction, in the order in which they are shown.
var writers = []string{"bare", "ours", "stock"}

// signupDatabases keeps one database per kind over all rounds: tables grow as they do in life.
type signupDatabases map[string]*signupDatabase

type signupDatabase struct {
	db   *database
	v    variant // nil: no outbox write
	next atomic.Int64
}

// Statements of the Customer service's signup.
const (
	lockKeySQL = `select pg_try_advisory_xact_lock(hashtextextended($1 || chr(31) || $2, 0))`
	answerSQL  = `
select fingerprint, status, body from idempotency_key
where scope = $1 and key = $2 and expires_at > clock_timestamp()`
	insertUserSQL = `
insert into users (id, email, email_key, name, status, registered_at)
values ($1, $2, $3, $4, $5, $6)
on conflict (email_key) do nothing`
	storeAnswerSQL = `
insert into idempotency_key (scope, key, fingerprint, status, body, expires_at)
values ($1, $2, $3, $4, $5, clock_timestamp() + make_interval(secs => $6))
on conflict (scope, key) do update set
    fingerprint = excluded.fingerprint, status = excluded.status, body = excluded.body,
    created_at = excluded.created_at, expires_at = excluded.expires_at`
)

var signups = corpus{topic: "bench-signups"}

// signup is the Customer service's, in as many round trips: begin and claim the idempotency key; insert the user, add
// the event, store the answer; commit. An outbox whose write cannot travel with other statements takes one more.
func (s *signupDatabase) signup(ctx context.Context) error {
	n := int(s.next.Add(1))
	const scope = "signup"
	key := fmt.Sprintf("key-%d", n)
	conn, err := s.db.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("acquire connection: %w", err)
	}
	defer conn.Release()
	claim := &pgx.Batch{}
	claim.BeginTx(pgx.TxOptions{})
	claim.Queue(lockKeySQL, scope, key)
	claim.Queue(answerSQL, scope, key)
	begun := conn.SendBatch(ctx, claim)
	tx := begun.Tx()
	defer func() { _ = tx.Rollback(ctx) }() // does nothing after a commit
	if err := begun.Close(); err != nil {
		return fmt.Errorf("claim key: %w", err)
	}
	writes := &pgx.Batch{}
	queueUser(writes, signups, n)
	q, queues := s.v.(queuer)
	if queues {
		if err := q.queue(ctx, writes, signups, n); err != nil {
			return err
		}
	}
	writes.Queue(storeAnswerSQL, scope, key, fingerprint, 201, answer, 86_400)
	if err := tx.SendBatch(ctx, writes).Close(); err != nil {
		return fmt.Errorf("store signup: %w", err)
	}
	if s.v != nil && !queues {
		if err := s.v.write(ctx, tx, signups, n); err != nil {
			return err
		}
	}
	return tx.Commit(ctx)
}

var (
	fingerprint = make([]byte, 32)
	answer      = []byte(`{"user_id":"019b0000-0000-7000-8000-000000000001","email":"member-1@example.org",` +
		`"status":"pending_verification","version":1}`)
)

// single is the smallest transaction there is: one insert, and the event. The write weighs most here.
func (s *signupDatabase) single(ctx context.Context) error {
	return s.singleNumbered(ctx, signups, int(s.next.Add(1)))
}

func (s *signupDatabase) singleNumbered(ctx context.Context, c corpus, n int) error {
	return pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error { return s.insert(ctx, tx, c, n) })
}

// insert stores a user, and the event if there is an outbox, each in a round trip of its own.
func (s *signupDatabase) insert(ctx context.Context, tx pgx.Tx, c corpus, n int) error {
	user := &pgx.Batch{}
	queueUser(user, c, n)
	if err := tx.SendBatch(ctx, user).Close(); err != nil {
		return fmt.Errorf("insert user: %w", err)
	}
	if s.v == nil {
		return nil
	}
	return s.v.write(ctx, tx, c, n)
}

func queueUser(b *pgx.Batch, c corpus, n int) {
	email := fmt.Sprintf("member-%d@example.org", n)
	b.Queue(insertUserSQL, c.key(n), email, email, "Ada Lovelace", "pending_verification", occurredAt)
}

// signupSteps measures transactions per second. No relay runs: this is what the write itself costs.
func (b *relayBench) signupSteps(int) []step {
	var steps []step
	add := func(name, kind string, clients int, do func(*signupDatabase, context.Context) error) {
		steps = append(steps, step{
			name: fmt.Sprintf("%s, %s, %d clients", name, kind, clients), weight: b.plan.SignupFor.Seconds(),
			run: func(ctx context.Context) error {
				return b.perSecond(ctx, fmt.Sprintf("%s.%d.%s", name, clients, kind), kind, clients, do)
			},
		})
	}
	for _, clients := range b.plan.Clients {
		for _, kind := range writers {
			add("signup", kind, clients, (*signupDatabase).signup)
		}
		for _, kind := range writers[:2] {
			add("single", kind, clients, (*signupDatabase).single)
		}
	}
	return steps
}

// perSecond runs transactions of one kind with so many clients.
func (b *relayBench) perSecond(
	ctx context.Context, id, kind string, clients int, do func(*signupDatabase, context.Context) error,
) error {
	s, err := b.signupDatabase(ctx, kind)
	if err != nil {
		return err
	}
	one := func(ctx context.Context) error { return do(s, ctx) }
	if _, err := closedLoop(ctx, clients, b.plan.SignupFor/10, one); err != nil { // connect, warm up
		return err
	}
	defer s.db.Reset() // 32 connections of each kind are more than the server allows
	rate, err := closedLoop(ctx, clients, b.plan.SignupFor, one)
	if err == nil {
		b.sheet.add(id, rate)
	}
	return err
}

func (b *relayBench) signupDatabase(ctx context.Context, kind string) (*signupDatabase, error) {
	if s := b.signups[kind]; s != nil {
		return s, nil
	}
	db, err := b.stage.newDatabase(ctx)
	if err != nil {
		return nil, err
	}
	s := &signupDatabase{db: db}
	switch kind {
	case "ours":
		s.v, err = newOurs(db)
	case "stock":
		s.v, err = newStock(db, 0)
	}
	if err != nil {
		return nil, err
	}
	if s.v != nil {
		b.stage.closers = append(b.stage.closers, s.v.close)
	}
	if b.signups == nil {
		b.signups = signupDatabases{}
	}
	b.signups[kind] = s
	return s, nil
}

// closedLoop runs do with so many clients for so long, each as fast as it can and at least once, and returns completed
// calls per second.
func closedLoop(
	ctx context.Context, clients int, length time.Duration, do func(context.Context) error,
) (float64, error) {
	var completed atomic.Int64
	began := time.Now()
	deadline := began.Add(length)
	group, groupCtx := errgroup.WithContext(ctx)
	for range clients {
		group.Go(func() error {
			for {
				if err := do(groupCtx); err != nil {
					return err
				}
				completed.Add(1)
				if !time.Now().Before(deadline) {
					return nil
				}
			}
		})
	}
	err := group.Wait()
	return float64(completed.Load()) / time.Since(began).Seconds(), errors.Join(err, ctx.Err())
}
