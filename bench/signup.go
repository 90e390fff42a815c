package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/internal/command"
	"example.com/twinbox/internal/event"
)

type signup struct {
	key, user, email string
	event            event.Event
}

const insertUserSQL = `
insert into users (id, email, email_key, name, status, registered_at)
values ($1, $2, $3, $4, $5, $6)
on conflict (email_key) do nothing`

const signupTimeout = 10 * time.Second

// store has the three round trips of the Customer service: begin and claim the idempotency key; insert the user, add
// the event, store the answer; commit. A variant without queue takes one more. Without a variant it adds no event.
func (s signup) store(ctx context.Context, pool *pgxpool.Pool, v variant) error {
	q, isQueuer := v.(queuer)
	whole := command.Transaction{Pool: pool, Timeout: signupTimeout}
	claim := command.Claim{Scope: "signup", Key: s.key, Fingerprint: anyFingerprint}
	_, err := whole.Once(ctx, claim, 24*time.Hour,
		func(ctx context.Context, tx pgx.Tx, writes *pgx.Batch) (command.Answer, error) {
			writes.Queue(insertUserSQL, s.user, s.email, s.email, visitor, "pending_verification", s.event.Time)
			answer := command.Answer{Status: http.StatusCreated, Body: anyAnswer}
			switch {
			case isQueuer:
				return answer, q.queue(ctx, writes, s.event)
			case v == nil:
				return answer, nil
			}
			return answer, v.write(ctx, tx, s.event)
		})
	if err == nil && isQueuer {
		q.committed()
	}
	return err
}

var (
	anyFingerprint = make([]byte, 32)
	anyAnswer      = []byte(`{"user_id":"019b0000-0000-7000-8000-000000000001","email":"member-1@example.org",` +
		`"status":"pending_verification","version":1}`)
)

func (c corpus) signup(n int) signup {
	e := c.event(n)
	return signup{key: strconv.Itoa(n), user: e.Key, email: email(n), event: e}
}

func checkStored(ctx context.Context, db *database, v variant, signups int) error {
	tables := []string{"users"}
	if v != nil {
		tables = append(tables, v.table())
	}
	for _, table := range tables {
		var rows int
		if err := db.QueryRow(ctx, "select count(*) from "+table).Scan(&rows); err != nil {
			return fmt.Errorf("count %s: %w", table, err)
		}
		if rows != signups {
			return fmt.Errorf("%d signups, but %d rows in %s", signups, rows, table)
		}
	}
	return nil
}
