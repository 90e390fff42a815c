package relay

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
)

func TestALogThatIsWellCostsNoDuplicate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	for range 3 {
		w.lead()
		w.produce("a", "b", "a", "c", "b")
	}
	require.Equal(t, int64(15), w.log.end(0)+w.log.end(1))
	require.Zero(t, testutil.ToFloat64(w.metrics.resent))
	require.Equal(t, w.log.end(0), w.count(`select (ends->'`+testTopic+`/0'->>'end')::bigint from outbox_cursor`))
	require.Equal(t, w.log.end(1), w.count(`select (ends->'`+testTopic+`/1'->>'expected')::bigint from outbox_cursor`))
	w.requireWhole()
}

// Traces of the models: sections 1 and 4 of docs/models. Each fails without the step in its name.
func TestWhatWentBackIsHealed(t *testing.T) {
	t.Parallel()
	for name, story := range map[string]func(w *world){
		// The record below the expected end is another.
		"the time below an end": func(w *world) {
			w.lead()
			w.produce("a")
			w.backUp("backup")
			w.add("a")
			w.crashAt(1, true)
			w.log.before = func(*message.Message) error { w.log.cut(0, 0); w.log.before = nil; return nil }
			w.die()
			w.goBack("backup")
			w.leadAndSettle()
			require.Equal(w, int64(1), w.count(`select count(*) from outbox_lost`))
		},
		"the cursor row is a point": func(w *world) {
			w.cfg.pointEvery = time.Hour
			w.lead()
			w.pointAt()
			w.produce("a")
			w.exec(`delete from outbox_point where position > 0`)
			w.backUp("backup")
			w.add("a")
			w.crashAt(1, true)
			w.log.before = func(*message.Message) error { w.log.cut(0, 0); w.log.before = nil; return nil }
			w.die()
			w.goBack("backup")
			w.leadAndSettle()
		},
		"a pass that went back": func(w *world) {
			w.lead()
			w.produce("a", "a")
			w.backUp("backup")
			w.log.cut(0, 1)
			w.crashAt(1, true)
			w.die()
			w.goBack("backup")
			w.leadAndSettle()
		},
		"lost events are sent again": func(w *world) {
			w.leadAndSettle()
			w.backUp("backup")
			w.produce("a")
			w.consumer.consume()
			w.add("b", "b")
			w.crashAt(2, true)
			w.log.before = func(*message.Message) error { w.log.cut(0, 0); w.log.before = nil; return nil }
			w.die()
			w.goBack("backup")
			w.leadAndSettle()
			require.Equal(w, int64(2), w.count(`select count(*) from outbox_lost`))
		},
		"lost events are kept": func(w *world) {
			w.leadAndSettle()
			w.lose("a")
			w.leadAndSettle()
			w.produce("a")
			require.Equal(w, int64(1), w.count(`select count(*) from outbox where version = 2`))
			w.log.cut(0, 0)
			w.leadAndSettle()
			require.Equal(w, "1", w.log.records[0][0].Metadata[event.HeaderVersion], "in the order of versions")
		},
		"a lost event is known once it was found": func(w *world) {
			w.leadAndSettle()
			w.lose("a")
			w.add("a")
			w.crashAt(1, true) // the pass
			w.lead()
			w.die()
			w.leadAndSettle()
			require.Equal(w, int64(2), w.count(`select version from outbox`))
			require.Equal(w, int64(1), w.count(`select count(*) from outbox_lost`))
		},
		"rows that no page has had are renumbered": func(w *world) {
			w.lead()
			w.produce("a")
			w.lose("a", "a")
			w.add("a", "b")
			w.leadAndSettle()
			require.Equal(w, int64(4), w.count(`select max(version) from outbox where key = 'a'`))
			require.Equal(w, int64(4), w.count(`select version from outbox_key where key = 'a'`))
			w.produce("a")
		},
		// A crash between the lost events and the partition's new state would lose an event.
		"a heal is one transaction": func(w *world) {
			w.leadAndSettle()
			w.lose("a")
			w.add("a")
			w.lead()
			w.exec(`
				create function fail() returns trigger language plpgsql as 'begin raise ''the server fails''; end';
				create trigger fails before update of looked_at on outbox_cursor execute function fail()`)
			require.ErrorContains(w, w.makeReady(w.Context(), []string{testTopic}), "the server fails")
			require.Zero(w, w.count(`select count(*) from outbox_lost`))
			require.Equal(w, int64(1), w.count(`select version from outbox`))
			w.exec(`drop trigger fails on outbox_cursor`)
			w.leadAndSettle()
			require.Equal(w, int64(2), w.count(`select version from outbox`))
		},
		"a page comes first": func(w *world) {
			w.add("a")
			w.backUp("backup")
			w.leadAndSettle()
			w.goBack("backup")
			w.cfg.askEvery = time.Hour
			w.lead()
			require.NoError(w, w.makeReady(w.Context(), []string{testTopic}))
			w.log.cut(0, 0)
			w.leadAndSettle()
		},
		"an acknowledged offset below the end": func(w *world) {
			w.cfg.askEvery = time.Hour
			w.lead()
			w.produce("a")
			n := 0
			w.log.before = func(*message.Message) error {
				if n++; n == 2 {
					w.log.cut(0, 1)
				}
				return nil
			}
			w.produce("a", "a")
		},
		// A record that a consumer has, but no one acknowledged, disappears with its relay.
		"an end that was expected": func(w *world) {
			w.lead()
			w.produce("a")
			w.add("b", "c", "d")
			w.crashAt(1, true)
			w.die()
			w.consumer.consume()
			w.log.cut(0, 1)
			w.log.mix = slices.Reverse
			w.leadAndSettle()
		},
		"a log that loses records while nothing is published": func(w *world) {
			w.lead()
			w.produce("a", "b", "c")
			w.consumer.consume()
			w.log.cut(0, 1)
			w.settle()
			w.produce("d")
		},
		// A pass's rows fill the offsets in another order.
		"passes until one began high enough": func(w *world) {
			w.loseUnread()
			w.settle()
		},
		"a heal that dies": func(w *world) {
			for n := range 4 {
				w.lead()
				w.produce("a", "b", "c")
				w.consumer.consume()
				w.log.cut(0, w.log.end(0)-2)
				w.crashAt(n+1, n%2 == 1)
				w.die()
				w.leadAndSettle()
				w.requireWhole()
			}
		},
		"an end that a pass has to reach": func(w *world) {
			w.loseUnread()
			w.callLimit = 1
			w.crashAt(1, true)
			w.die()
			w.leadAndSettle()
		},
		"a relay that dies before a pass": func(w *world) {
			w.loseUnread()
			w.compareEnds(w.Context())
			looked, err := w.look(w.Context(), []string{testTopic})
			require.NoError(w, err)
			_, err = w.check(w.Context(), looked)
			require.NoError(w, err)
			w.leadAndSettle()
		},
		"a loss of what a pass has sent": func(w *world) {
			end := w.loseUnread()
			w.log.after = func(*message.Message) error {
				if w.log.end(0) > end {
					w.consumer.consume()
					w.log.cut(0, end)
					w.log.after = nil
				}
				return nil
			}
			w.settle()
		},
		"a loss of what a dead relay's pass has sent": func(w *world) {
			end := w.loseUnread()
			w.crashAt(4, true)
			w.die()
			w.consumer.consume()
			w.log.cut(0, end)
			w.leadAndSettle()
		},
		"a loss of what nobody acknowledged": func(w *world) {
			w.lead()
			w.produce("a")
			w.add("b", "c")
			w.log.before = failing(event.KeyMetadata, "b", errNotSent)
			w.log.after = func(*message.Message) error {
				w.consumer.consume()
				w.log.cut(0, 1)
				w.log.before, w.log.after = nil, nil
				return errNotSent
			}
			w.settle()
		},
		"a loss of what nobody acknowledged, after another page": func(w *world) {
			w.log.partitions = 2
			w.cfg.patience, w.cfg.attempts = time.Nanosecond, 1
			w.lead()
			w.produce("a", "b")
			w.add("a", "c") // c is in the partition of a
			w.log.before = failing(event.KeyMetadata, "a", errNotSent)
			w.log.after = func(*message.Message) error {
				w.log.before, w.log.after = nil, nil
				return errNotSent
			}
			w.log.asked = silent(0)
			w.settle()
			require.Equal(w, int64(2), w.count(`select count(*) from outbox_parked`))
			w.produce("b")
			w.consumer.consume()
			w.log.cut(0, 1)
			w.log.asked = nil
			w.leadAndSettle()
			w.retryParked()
			w.produce("c")
		},
		// The cursor does not know the rows before a lost event as published. The log loses them.
		"rows before a lost event": func(w *world) {
			w.leadAndSettle()
			w.add("a")
			w.backUp("backup")
			w.settle()
			w.produce("a")
			w.goBack("backup")
			w.log.before = func(*message.Message) error { w.log.cut(0, 0); w.log.before = nil; return nil }
			w.leadAndSettle()
			require.Equal(w, int64(1), w.count(`select count(*) from outbox_lost`))
			require.Equal(w, "1", w.log.records[0][0].Metadata[event.HeaderVersion], "in the order of versions")
			require.InDelta(w, 1, testutil.ToFloat64(w.metrics.brokerLosses), 0, "found during the heal of the database")
			require.Equal(w, int64(1), w.count(`select count(*) from outbox_cursor where broker_back_at is not null`))
		},
		"a held row before a lost event": func(w *world) {
			w.cfg.patience, w.cfg.attempts = time.Nanosecond, 1
			w.leadAndSettle()
			w.add("a")
			w.backUp("backup")
			w.settle()
			w.produce("a")
			w.goBack("backup")
			sent := 0
			w.log.before = func(*message.Message) error {
				if sent++; sent <= 2 { // the heal of the database
					return nil
				}
				w.log.cut(0, 0)
				w.log.before = nil
				return errNotSent
			}
			w.leadAndSettle()
			require.InDelta(w, 1, testutil.ToFloat64(w.metrics.parkings), 0)
			w.retryParked()
		},
		"a record that was held": func(w *world) {
			w.cfg.parkedRetryMax = time.Millisecond
			w.log.before = failing(event.KeyMetadata, "a", &permanentError{Reason: "too large"})
			w.lead()
			w.produce("a", "b")
			w.await(func() bool { // other databases' transactions keep points low
				w.add("b")
				return w.count(`select count(*) from outbox_point where position > 1`) > 0
			})
			w.settle()
			end := w.log.end(0)
			w.log.before = nil
			w.await(func() bool { return w.count(`select count(*) from outbox_held`) == 0 })
			w.settle()
			w.log.cut(0, end)
			w.settle()
		},
		// The check forgets points above the oldest needed one.
		"a loss is told once": func(w *world) {
			w.log.partitions = 2
			w.lead()
			for range 2 {
				w.produce("a")
				w.produce("b")
			}
			w.log.cut(0, 0)
			w.log.cut(1, 1)
			failures := 2
			w.log.before = func(*message.Message) error {
				if failures--; failures >= 0 {
					return errNotSent
				}
				return nil
			}
			w.settle()
			require.InDelta(w, 2, testutil.ToFloat64(w.metrics.brokerLosses), 0, "of two partitions")
		},
		"a look that fails first": func(w *world) {
			w.leadAndSettle()
			for n := range 3 {
				w.backUp("backup")
				w.produce("a")
				w.consumer.consume()
				w.goBack("backup")
				w.add("a")
				failures := n
				w.log.asked = func(int32) error {
					if failures--; failures >= 0 {
						return errNotSent
					}
					return nil
				}
				w.leadAndSettle()
				require.Equal(w, int64(n+1), w.count(`select count(*) from outbox_lost`))
			}
		},
		"a batch that was sent twice": func(w *world) {
			w.lead()
			w.produce("a")
			w.log.repeated = true
			w.log.before = func(*message.Message) error { w.log.repeated = w.log.end(0) < 3; return nil }
			w.produce("b", "c")
			require.Greater(w, w.log.end(0), int64(3), "the page is sent again")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			story(w)
			w.requireWhole()
		})
	}
}

// loseUnread publishes four events and lets the log lose the last three. The consumer has read all but the last one. It
// returns where the log ended. A pass fills the offsets in another order.
func (w *world) loseUnread() (end int64) {
	w.Helper()
	w.lead()
	w.produce("a", "b", "c", "d")
	end = w.log.end(0)
	w.consumer.readTo(0, end-1)
	w.log.cut(0, end-3)
	w.log.mix = slices.Reverse
	return end
}

func (w *world) pointAt() { w.ends.pointAt = time.Now().Add(time.Hour) }

func (w *world) await(is func() bool) {
	w.Helper()
	for end := time.Now().Add(testTimeout); !is(); {
		require.True(w, time.Now().Before(end), "what was waited for has not happened")
		w.ends.lookAt = time.Time{}
		_, err := w.round(w.Context())
		require.NoError(w, err)
	}
}

func TestARefusedLostEventParksItsKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.cfg.parkedRetryMax = time.Millisecond
	w.lead()
	w.produce("a")
	w.lose("a")
	w.leadAndSettle()
	w.produce("a", "b")
	require.Equal(t, int64(1), w.count(`select count(*) from outbox_lost where version = 2`))
	w.log.before = failing(event.HeaderVersion, "2", &permanentError{Reason: "too large"})
	w.log.cut(0, 0)
	w.leadAndSettle()
	require.Positive(t, testutil.ToFloat64(w.metrics.parkings), "in each pass")
	w.await(func() bool { return w.count(`select count(*) from outbox_parked`) == 0 })
	require.Zero(t, w.count(`select count(*) from outbox_held`))
	require.True(t, slices.ContainsFunc(w.log.records[0], func(m *message.Message) bool {
		return m.Metadata[event.HeaderVersion] == "3"
	}))
}

func TestAHealStopsForAPauseAndAStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.lead()
	for range 15 {
		w.add("a", "b")
	}
	w.settle()
	w.log.cut(0, 0)
	w.log.before = func(*message.Message) error {
		w.exec(`update outbox_cursor set paused_at = now()`)
		w.log.before = nil
		return nil
	}
	w.leadAndSettle()
	require.Equal(t, int64(10), w.log.end(0), "one call")
	stopped, stop := context.WithCancel(t.Context())
	w.log.before = func(*message.Message) error {
		stop()
		return nil
	}
	w.exec(`update outbox_cursor set paused_at = null`)
	w.ends.lookAt = time.Time{}
	_, err := w.round(stopped)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, int64(20), w.log.end(0), "one call")
	w.log.before = nil
	w.leadAndSettle()
	w.requireWhole()
}

func TestAHealTakesItsTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.leadAndSettle()
	w.lose("a")
	w.lead()
	w.exec(`
		create function wait() returns trigger language plpgsql as 'begin perform pg_sleep(1.2); return null; end';
		create trigger waits before insert on outbox_key for each statement execute function wait()`)
	_, err := w.conn.Exec(t.Context(), `set statement_timeout = '1s'`)
	require.NoError(t, err)
	w.settle()
	require.Equal(t, int64(1), w.count(`select count(*) from outbox_lost`))
	w.requireWhole()
}
