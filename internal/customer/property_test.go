package customer

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/twinbox/internal/command"
	"example.com/twinbox/internal/domain"
)

type kept struct {
	email   domain.Email
	name    domain.Name
	body    string
	expired bool
}

type signups struct {
	taken map[string]bool // address keys
	keys  map[string]kept
	held  map[string]func() // keys under which another request works
}

func (m *signups) outcome(key string, email domain.Email, name domain.Name) (given string, err error) {
	known, found := m.keys[key] // never the empty one
	_, busy := m.held[key]
	switch {
	case found && !known.expired && (known.email != email || known.name != name):
		return "", command.ErrKeyReused
	case found && !known.expired:
		return known.body, nil
	case busy:
		return "", command.ErrKeyInFlight
	case m.taken[email.Key()]:
		return "", &domain.Error{Code: domain.CodeEmailTaken}
	}
	return "", nil
}

func TestSignupsInAnyOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		m := &signups{taken: map[string]bool{}, keys: map[string]kept{}, held: map[string]func(){}}
		before := b.stored(t)
		defer func() {
			for _, release := range m.held {
				release()
			}
		}()
		key := rapid.Map(rapid.IntRange(1, 2), func(n int) string { return fmt.Sprint("run", run, "-", n) })
		keyOrNone := rapid.OneOf(key, rapid.Just(""))
		email := rapid.Map(rapid.SampledFrom([]string{"ada", "ADA", "eve"}), func(who string) domain.Email {
			return domain.Email(fmt.Sprintf("%s%d@example.org", who, run))
		})
		name := rapid.SampledFrom([]domain.Name{"Ada", "Eve"})
		rt.Repeat(map[string]func(*rapid.T){
			"sign up": func(rt *rapid.T) {
				key, email, name := keyOrNone.Draw(rt, "key"), email.Draw(rt, "email"), name.Draw(rt, "name")
				given, want := m.outcome(key, email, name)
				answer, err := b.commands.SignUp(t.Context(), Signup{Key: key, Email: email, Name: name})
				require.ErrorIs(rt, err, want)
				switch {
				case err != nil:
				case given != "":
					require.Equal(rt, given, string(answer.Body))
				default:
					m.taken[email.Key()] = true
					if key != "" {
						m.keys[key] = kept{email: email, name: name, body: string(answer.Body)}
					}
				}
			},
			"another request takes a key": func(rt *rapid.T) {
				key := key.Draw(rt, "key")
				if m.held[key] == nil {
					m.held[key] = b.holdKey(t, key)
				}
			},
			"the other request is gone": func(rt *rapid.T) {
				key := key.Draw(rt, "key")
				if release := m.held[key]; release != nil {
					release()
					delete(m.held, key)
				}
			},
			"a key expires": func(rt *rapid.T) {
				key := key.Draw(rt, "key")
				_, err := b.pool.Exec(t.Context(),
					`update idempotency_key set expires_at = clock_timestamp() - interval '1 s' where key = $1`, key)
				require.NoError(rt, err)
				if known, found := m.keys[key]; found {
					known.expired = true
					m.keys[key] = known
				}
			},
			"expired keys are forgotten": func(rt *rapid.T) {
				require.NoError(rt, command.Forget(t.Context(), b.pool, deleteExpired...))
			},
		})
		now := b.stored(t)
		require.Equal(rt, len(m.taken), now[0]-before[0], "users")
		require.Equal(rt, len(m.taken), now[1]-before[1], "events")
	})
}

func (b *bundle) holdKey(t *testing.T, key string) (release func()) {
	t.Helper()
	tx, err := b.pool.Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
	_, err = tx.Exec(t.Context(), command.LockKey, "signup", key)
	require.NoError(t, err)
	return func() { require.NoError(t, tx.Commit(t.Context())) }
}
