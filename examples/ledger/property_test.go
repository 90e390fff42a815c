package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/twinbox/examples/ledger/account"
	"example.com/twinbox/internal/command"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
)

// books are a model of one account without a database.
type books struct{ balance, version int64 }

// world runs the service in one goroutine, so a schedule is repeatable and shrinks.
type world struct {
	*bundle
	ids   []account.ID
	books map[account.ID]*books

	topic     []event.Event // with duplicates, and perhaps out of order
	committed int           // the group's offset
	consumer  *consumer
	fail      func(msg *message.Message, next message.HandlerFunc) ([]*message.Message, error)
}

// However commands race, records repeat and the consumer dies: after all records and replays each balance is the sum of
// its account's commands, at the same version. More schedules: -rapid.checks=N.
func TestAnyScheduleEndsInTheSumOfTheCommands(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rapid.Check(t, func(rt *rapid.T) {
		_, err := b.pool.Exec(background, `delete from dead_letter`) // of a schedule that failed, while this one shrinks it
		require.NoError(rt, err)
		w := &world{bundle: b, books: map[account.ID]*books{}}
		for range rapid.IntRange(1, 2).Draw(rt, "accounts") {
			w.open(rt)
		}
		for range rapid.IntRange(1, 10).Draw(rt, "commands") {
			w.command(rt)
		}
		for id, want := range w.books {
			w.requireWritten(rt, id, want.balance, want.version)
		}
		w.publish(rt)
		w.restart(rt)
		for steps := 0; w.committed < len(w.topic); steps++ {
			w.step(rt, steps)
		}
		w.restart(rt)
		w.replay(rt)
		for id, want := range w.books {
			w.requireRead(rt, id, want.balance, want.version)
		}
	})
}

func (w *world) open(rt *rapid.T) {
	answer, err := w.commands.Open(background, "", "EUR")
	require.NoError(rt, err)
	id := stateOf(rt, answer).ID
	w.ids, w.books[id] = append(w.ids, id), &books{version: 1}
}

func (w *world) command(rt *rapid.T) {
	id := rapid.SampledFrom(w.ids).Draw(rt, "account")
	want := w.books[id]
	m := Movement{Account: id, Money: account.Money{Amount: rapid.Int64Range(1, 50).Draw(rt, "amount"), Currency: "EUR"}}
	do, after := w.commands.Credit, want.balance+m.Money.Amount
	if rapid.Bool().Draw(rt, "debit") {
		do, after = w.commands.Debit, want.balance-m.Money.Amount
	}
	var refused error
	if after < 0 {
		refused = &account.Error{Code: account.CodeInsufficientFunds}
	}
	if seen := rapid.IntRange(-1, 2).Draw(rt, "versions behind"); seen >= 0 {
		expected := want.version - int64(seen)
		m.Expected = &expected
		if seen > 0 {
			refused = &account.Error{Code: account.CodeVersionMismatch}
		}
	}
	attempts := 1
	if rapid.Bool().Draw(rt, "under a key") {
		m.Key, attempts = fmt.Sprint(id, want.version, refused, after, m.Expected != nil), 2
	}
	for range attempts {
		answer, err := do(background, m)
		require.ErrorIs(rt, err, refused)
		if err == nil {
			state := stateOf(rt, answer)
			require.Equal(rt, after, state.Balance)
			require.Equal(rt, want.version+1, state.Version)
		}
	}
	if refused == nil {
		want.balance, want.version = after, want.version+1
	}
}

func stateOf(rt *rapid.T, answer command.Answer) account.Account {
	var state account.Account
	require.NoError(rt, json.Unmarshal(answer.Body, &state))
	return state
}

// publish writes every event at least once, mostly in order.
func (w *world) publish(rt *rapid.T) {
	events := w.published(rt, w.ids...)
	for _, e := range events {
		for range rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(rt, "times") {
			w.topic = append(w.topic, e)
		}
	}
	for range rapid.IntRange(0, len(w.topic)).Draw(rt, "swaps") {
		i, j := rapid.IntRange(0, len(w.topic)-1).Draw(rt, "of"), rapid.IntRange(0, len(w.topic)-1).Draw(rt, "and")
		w.topic[i], w.topic[j] = w.topic[j], w.topic[i]
	}
}

func (w *world) restart(rt *rapid.T) {
	w.consumer = newConsumer(rt, w.pool)
	next := w.consumer.next
	w.consumer.next = func(msg *message.Message) ([]*message.Message, error) {
		if w.fail != nil {
			return w.fail(msg, next)
		}
		return next(msg)
	}
}

// step mostly moves the offset, so that a schedule ends.
func (w *world) step(rt *rapid.T, steps int) {
	what := "deliver"
	if steps < 30 {
		what = rapid.SampledFrom([]string{
			"deliver", "deliver", "deliver", "die", "die at a crash point", "lose the acknowledgement", "set back", "give up",
			"replay",
		}).Draw(rt, "step")
	}
	switch what {
	case "deliver":
		w.committed += w.deliver(rt, background)
	case "die":
		w.die(rt)
	case "die at a crash point":
		ctx, die := context.WithCancel(background)
		disarm := armCrashPoint(rt, die)
		w.deliver(rt, ctx) // it may or may not have acknowledged
		disarm()
		die()
		w.restart(rt)
	case "lose the acknowledgement":
		w.deliver(rt, background)
		w.restart(rt)
	case "set back":
		w.committed -= rapid.IntRange(0, w.committed).Draw(rt, "by")
	case "give up":
		w.fail = func(*message.Message, message.HandlerFunc) ([]*message.Message, error) {
			w.fail = nil
			return nil, inbox.Permanent(errors.New("not today"))
		}
		w.committed += w.deliver(rt, background)
		w.fail = nil
	case "replay":
		w.consumer.replay(rt)
	}
}

// deliver returns how many of the next records need not come again.
func (w *world) deliver(rt *rapid.T, ctx context.Context) int {
	rest := w.topic[w.committed:]
	n := rapid.IntRange(1, min(5, len(rest))).Draw(rt, "records")
	done, err := w.consumer.deliverAt(ctx, int64(w.committed), rest[:n]...)
	if ctx.Err() == nil {
		require.NoError(rt, err)
		require.Equal(rt, n, done)
	}
	return done
}

// die ends the process after the write of a handler, and before its commit.
func (w *world) die(rt *rapid.T) {
	ctx, die := context.WithCancel(background)
	defer die()
	after := rapid.IntRange(0, 4).Draw(rt, "handlers before")
	w.fail = func(msg *message.Message, next message.HandlerFunc) ([]*message.Message, error) {
		_, err := next(msg)
		if after--; after < 0 {
			die()
		}
		return nil, err
	}
	w.deliver(rt, ctx)
	w.fail = nil
	w.restart(rt)
}

// Dead letters after which a process died may need several rounds.
func (w *world) replay(rt *rapid.T) {
	for range 100 {
		if w.count(rt, `select count(*) from dead_letter where state = 'waiting'`) == 0 {
			return
		}
		w.consumer.replay(rt)
	}
	require.Fail(rt, "letters wait after a hundred replays")
}
