package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/customer/openapi"
	"example.com/twinbox/internal/domain"
)

// stockLine does the same for its users with Watermill's parts: the signup's statements with the Forwarder's publisher
// in their transaction, stock's relay (stock.go), and the consumer of path_consumer.go.
type stockLine struct {
	cfg       lineConfig
	pool      *pgxpool.Pool // Customer's
	outbox    *stock
	publisher message.Publisher
	consumer  *handConsumer
}

// serviceConns is how many connections a service's pool has by default (DATABASE_MAX_CONNECTIONS).
const serviceConns = 40

func newStockLine(ctx context.Context, cfg lineConfig) (_ line, err error) {
	l := &stockLine{cfg: cfg}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}()
	if l.pool, err = servicePool(ctx, cfg.customer); err != nil {
		return nil, err
	}
	if l.outbox, err = newStock(cfg.customer, cfg.poll); err != nil {
		return nil, err
	}
	if l.publisher, err = l.outbox.publisher(cfg.brokers); err != nil {
		return nil, err
	}
	l.consumer, err = newHandConsumer(ctx, cfg)
	return l, err
}

func servicePool(ctx context.Context, db *database) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(db.dsn)
	if err != nil {
		return nil, fmt.Errorf("read DSN: %w", err)
	}
	cfg.MaxConns = serviceConns
	return pgxpool.NewWithConfig(ctx, cfg)
}

// signUp writes what Customer's signup writes, a statement after the other.
func (l *stockLine) signUp(ctx context.Context, who person) (domain.UserID, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", err
	}
	eventID, err := uuid.NewV7()
	if err != nil {
		return "", err
	}
	user, registered := domain.Register(domain.UserID(id.String()), who.email, who.name, time.Now().UTC())
	return user.ID, pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error {
		const scope = "signup"
		claim := &pgx.Batch{}
		claim.Queue(lockKeySQL, scope, who.key)
		claim.Queue(answerSQL, scope, who.key)
		if err := tx.SendBatch(ctx, claim).Close(); err != nil {
			return fmt.Errorf("claim key: %w", err)
		}
		_, err := tx.Exec(ctx, insertUserSQL, user.ID, user.Email, user.Email.Key(), user.Name, user.Status,
			user.RegisteredAt)
		if err != nil {
			return fmt.Errorf("insert user: %w", err)
		}
		event, err := contract.UserRegistered.New(string(user.ID), user.Version, user.RegisteredAt, registered)
		if err != nil {
			return err
		}
		event.ID = eventID.String()
		if err := l.outbox.add(ctx, tx, event.Topic, event.Message()); err != nil {
			return err
		}
		body, err := json.Marshal(openapi.SignupResponse{
			UserId: string(user.ID), Email: string(user.Email), Status: openapi.Status(user.Status), Version: user.Version,
		})
		if err != nil {
			return err
		}
		print := sha256.Sum256([]byte(string(who.email) + "\x00" + string(who.name)))
		_, err = tx.Exec(ctx, storeAnswerSQL, scope, who.key, print[:], http.StatusCreated, body, 86_400)
		return err
	})
}

func (l *stockLine) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return l.outbox.relay(ctx, l.publisher) })
	group.Go(func() error { return l.consumer.run(ctx) })
	return group.Wait()
}

// verify looks at the tables of both services: there is nothing else that would know.
func (l *stockLine) verify(ctx context.Context) error { return verifyEffects(ctx, l.cfg) }

func (l *stockLine) close() error {
	var problems []error
	if l.consumer != nil {
		l.consumer.pool.Close()
	}
	if l.publisher != nil {
		problems = append(problems, l.publisher.Close())
	}
	if l.outbox != nil {
		problems = append(problems, l.outbox.close())
	}
	if l.pool != nil {
		l.pool.Close()
	}
	return errors.Join(problems...)
}

// userOf reads the user out of a signup's answer.
func userOf(answer []byte) (domain.UserID, error) {
	var body openapi.SignupResponse
	if err := json.Unmarshal(answer, &body); err != nil {
		return "", fmt.Errorf("read answer: %w", err)
	}
	return domain.UserID(body.UserId), nil
}
