package kv

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/test/inboxtest"
	"example.com/twinbox/test/natsserver"
)

func subject(open func(t *testing.T) Store) *inboxtest.Subject {
	registry, done := prometheus.NewRegistry(), &effects{}
	effectOf := func(consumer, id string) string { return consumer + "\x00" + id }
	process := func(owner string) func(t *testing.T, consumer string) inboxtest.Process {
		return func(t *testing.T, consumer string) inboxtest.Process {
			t.Helper()
			cfg := quiet(registry)
			cfg.Owner, cfg.Cache = owner, 8
			in := newInbox(t, open(t), cfg)
			return func(ctx context.Context, id string, handler inboxtest.Handler) (inbox.Outcome, error) {
				outcome, err := in.Process(ctx, consumer, id, func(ctx context.Context) error {
					return handler.Run(func() error { return done.note(effectOf(consumer, id))(ctx) })
				})
				return inbox.Outcome(outcome), err
			}
		}
	}
	return &inboxtest.Subject{
		Open: process("test"), Beside: process(""),
		Effects: func(_ *testing.T, consumer, id string) int { return done.of(effectOf(consumer, id)) },
		Counted: func(t *testing.T) int {
			t.Helper()
			return counter(t, registry, secondEffects)
		},
		Forget: func(t *testing.T, consumer, id string) {
			t.Helper()
			forget(t, open(t), digestOf(consumer, id).key())
		},
		Forgotten:  inbox.Applied,
		AfterCrash: 2,
	}
}

func forget(t *testing.T, store Store, key string) {
	t.Helper()
	entry, err := store.Get(t.Context(), key)
	require.NoError(t, err)
	require.NoError(t, store.Delete(t.Context(), key, entry.Revision))
}

func TestConformanceOnMemory(t *testing.T) {
	t.Parallel()
	inboxtest.Conform(t, func(*testing.T) *inboxtest.Subject {
		store := NewMemory(0)
		return subject(func(*testing.T) Store { return store })
	})
}

func TestConformanceOnJetStream(t *testing.T) {
	t.Parallel()
	inboxtest.Conform(t, func(t *testing.T) *inboxtest.Subject {
		t.Helper()
		server := natsserver.ForTest(t)
		s := subject(func(t *testing.T) Store { return bucket(t, server, 0) })
		s.Stop = func(*testing.T) { server.Stop() }
		s.Start = func(t *testing.T) { server.Start(t) }
		return s
	})
}

func TestABucketForgetsAfterItsTime(t *testing.T) {
	t.Parallel()
	store := bucket(t, natsserver.ForTest(t), time.Hour)
	status, err := store.bucket.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, []time.Duration{time.Hour, time.Hour}, []time.Duration{status.TTL(), store.TTL()})
}
