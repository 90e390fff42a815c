package inboxtest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/inbox"
)

// Subject is an inbox's store and the effects of its handlers, new for each part of the suite.
type Subject struct {
	// Open returns the inbox of a process that starts. Processes of a subject share only the store and the name. Beside
	// returns a concurrent one with a different name.
	Open, Beside func(t *testing.T, consumer string) Process
	// Effects counts the effects of the id for that consumer. Counted counts all effects that were reported as possibly
	// second ones.
	Effects func(t *testing.T, consumer, id string) int
	Counted func(t *testing.T) int
	// Stop and Start take the store away and bring it back with its data. Nil: it cannot be away.
	Stop, Start func(t *testing.T)
	// Forget makes the store forget the id. A later delivery has the outcome Forgotten.
	Forget    func(t *testing.T, consumer, id string)
	Forgotten inbox.Outcome
	// AfterCrash is the number of effects of an event whose process dies once before it is remembered.
	AfterCrash int
}

type Process func(ctx context.Context, id string, handler Handler) (inbox.Outcome, error)

// Handler has one effect, between Before and After. An error of either is the handler's.
type Handler struct{ Before, After func() error }

func (h Handler) Run(effect func() error) error {
	for _, step := range []func() error{h.Before, effect, h.After} {
		if step != nil {
			if err := step(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Conform checks the promises of every inbox, with any store.
func Conform(t *testing.T, setup func(t *testing.T) *Subject) {
	t.Helper()
	for name, check := range map[string]func(*testing.T, *Subject){
		"ten twins at once":                        tenTwins,
		"ten twins in ten processes":               tenProcesses,
		"a twin waits for the first to end":        twinWaits,
		"a failure is not remembered":              failureIsForgotten,
		"a crash after the effect":                 crashAfterEffect,
		"two consumers":                            twoConsumers,
		"many ids that look alike":                 lookalikes,
		"ids that cannot be remembered":            refusedIDs,
		"an id that was forgotten":                 forgottenID,
		"the store is away":                        storeAway,
		"the store goes between effect and memory": storeGoes,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			if s.Stop == nil && strings.HasPrefix(name, "the store") {
				return
			}
			check(t, s)
		})
	}
}

const (
	one = "consumer-1"
	id1 = "id-1"
)

func (s *Subject) deliver(t *testing.T, process Process, id string, want inbox.Outcome) {
	t.Helper()
	outcome, err := process(t.Context(), id, Handler{})
	require.NoError(t, err)
	require.Equal(t, want, outcome, "id %q", id)
}

// effects also requires that the suite counted any effect beyond the first.
func (s *Subject) effects(t *testing.T, id string, want int) {
	t.Helper()
	require.Equal(t, want, s.Effects(t, one, id), "effects of id %q", id)
	require.GreaterOrEqual(t, s.Counted(t), want-1, "effects that were said to be possibly second ones")
}

const twins = 10

// requireOneApplied delivers one id concurrently, to a process for each delivery.
func requireOneApplied(t *testing.T, open func() Process) {
	t.Helper()
	outcomes, start := make(chan inbox.Outcome, twins), make(chan struct{})
	var all sync.WaitGroup
	for range twins {
		process := open()
		all.Go(func() {
			<-start
			if outcome, err := process(context.WithoutCancel(t.Context()), id1, Handler{}); err == nil {
				outcomes <- outcome
			}
		})
	}
	close(start)
	all.Wait()
	close(outcomes)
	seen := map[inbox.Outcome]int{}
	for outcome := range outcomes {
		seen[outcome]++
	}
	require.Equal(t, map[inbox.Outcome]int{inbox.Applied: 1, inbox.Duplicate: twins - 1}, seen)
}

func tenTwins(t *testing.T, s *Subject) {
	process := s.Open(t, one)
	requireOneApplied(t, func() Process { return process })
	s.effects(t, id1, 1)
}

func tenProcesses(t *testing.T, s *Subject) {
	requireOneApplied(t, func() Process { return s.Beside(t, one) })
	s.effects(t, id1, 1)
	require.Zero(t, s.Counted(t))
}

// If the first fails, the duplicate counts: it must neither run nor get "duplicate" before.
func twinWaits(t *testing.T, s *Subject) {
	process := s.Open(t, one)
	inside, release := make(chan struct{}), make(chan struct{})
	first, second := make(chan error, 1), make(chan inbox.Outcome, 1)
	go func() {
		_, err := process(context.WithoutCancel(t.Context()), id1, Handler{Before: func() error {
			close(inside)
			<-release
			return errors.New("failed in the end")
		}})
		first <- err
	}()
	<-inside
	go func() {
		outcome, err := process(context.WithoutCancel(t.Context()), id1, Handler{})
		if err == nil {
			second <- outcome
		}
		close(second)
	}()
	select {
	case outcome := <-second:
		require.Fail(t, "the twin did not wait", "%s", outcome)
	default:
	}
	close(release)
	require.Error(t, <-first)
	require.Equal(t, inbox.Applied, <-second)
	s.effects(t, id1, 1)
}

func failureIsForgotten(t *testing.T, s *Subject) {
	process, broken := s.Open(t, one), errors.New("broken")
	for range 2 {
		outcome, err := process(t.Context(), id1, Handler{Before: func() error { return broken }})
		require.ErrorIs(t, err, broken)
		require.Equal(t, inbox.Failed, outcome)
	}
	s.effects(t, id1, 0)
	s.deliver(t, s.Open(t, one), id1, inbox.Applied)
	s.effects(t, id1, 1)
	require.Zero(t, s.Counted(t), "an error is no crash")
}

// The handler's goroutine ends after its effect, as with its process.
func crashAfterEffect(t *testing.T, s *Subject) {
	died := make(chan struct{})
	process := s.Open(t, one)
	go func() {
		defer close(died)
		_, _ = process(context.WithoutCancel(t.Context()), id1, Handler{After: func() error {
			runtime.Goexit()
			return nil
		}})
	}()
	<-died
	successor := s.Open(t, one)
	s.deliver(t, successor, id1, inbox.Applied)
	s.effects(t, id1, s.AfterCrash)
	require.Equal(t, s.AfterCrash-1, s.Counted(t))
	s.deliver(t, successor, id1, inbox.Duplicate)
	s.deliver(t, s.Open(t, one), id1, inbox.Duplicate)
	s.effects(t, id1, s.AfterCrash)
}

func twoConsumers(t *testing.T, s *Subject) {
	for _, consumer := range []string{one, "consumer-2", "Consumer-1", "consumer-1 "} {
		s.deliver(t, s.Open(t, consumer), id1, inbox.Applied)
		require.Equal(t, 1, s.Effects(t, consumer, id1), consumer)
	}
	s.effects(t, id1, 1)
	s.deliver(t, s.Open(t, "ab"), "c", inbox.Applied)
	s.deliver(t, s.Open(t, "a"), "bc", inbox.Applied)
}

var alike = []string{
	"a", "A", " a", "a ", "a  b", "a b", "a\u00a0b", "a/b", "a\\b", "a.b", "a*b", "a>", "a=", "a-b", "a_b", "a%20b", "'a'",
	"\u00e9", "e\u0301", "\u0430", "ß", "ss", "SS", "İ", "i", "I", "01", "1", "日", strings.Repeat("x", 254),
	strings.Repeat("x", 255), strings.Repeat("日", 255),
}

// With the numbered ids there are more than a cache holds.
func lookalikes(t *testing.T, s *Subject) {
	process, ids := s.Open(t, one), alike
	for i := range 40 {
		ids = append(ids, fmt.Sprint("id-", i))
	}
	for _, want := range []inbox.Outcome{inbox.Applied, inbox.Duplicate} {
		for _, id := range ids {
			s.deliver(t, process, id, want)
		}
		process = s.Open(t, one)
	}
	for _, id := range ids {
		s.effects(t, id, 1)
	}
}

func refusedIDs(t *testing.T, s *Subject) {
	process := s.Open(t, one)
	for name, id := range map[string]string{
		"empty": "", "too long": strings.Repeat("x", 256), "NUL": "a\x00", "not UTF-8": "\xff", "line": "a\nb",
	} {
		outcome, err := process(t.Context(), id, Handler{Before: func() error {
			t.Error("ran")
			return nil
		}})
		require.Error(t, err, name)
		require.Equal(t, inbox.Failed, outcome, name)
	}
}

func forgottenID(t *testing.T, s *Subject) {
	process, id := s.Open(t, one), NewEvent().ID
	s.deliver(t, process, id, inbox.Applied)
	s.Forget(t, one, id)
	outcome, err := s.Open(t, one)(t.Context(), id, Handler{})
	require.Equal(t, s.Forgotten, outcome)
	if outcome == inbox.Expired { // it does not know
		require.ErrorIs(t, err, inbox.ErrExpired)
		require.Equal(t, 1, s.Effects(t, one, id))
		return
	}
	require.NoError(t, err)
	require.Equal(t, 2, s.Effects(t, one, id))
}

func storeAway(t *testing.T, s *Subject) {
	process := s.Open(t, one)
	s.deliver(t, process, id1, inbox.Applied)
	s.Stop(t)
	outcome, err := process(t.Context(), "id-2", Handler{})
	require.Error(t, err)
	require.Equal(t, inbox.Failed, outcome, "no answer is not a yes")
	s.Start(t)
	s.effects(t, "id-2", 0)
	s.deliver(t, process, "id-2", inbox.Applied)
	for _, process := range []Process{process, s.Open(t, one)} {
		s.deliver(t, process, id1, inbox.Duplicate)
	}
	s.effects(t, id1, 1)
	s.effects(t, "id-2", 1)
}

// storeGoes stops the store after the effect: the inbox may undo it, or insist on remembering it.
func storeGoes(t *testing.T, s *Subject) {
	process := s.Open(t, one)
	gone := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = process(context.WithoutCancel(t.Context()), id1, Handler{After: func() error {
			s.Stop(t)
			close(gone)
			return nil
		}})
	}()
	<-gone
	s.Start(t)
	<-ended
	_, err := process(t.Context(), id1, Handler{})
	require.NoError(t, err)
	s.deliver(t, process, id1, inbox.Duplicate)
	s.deliver(t, s.Open(t, one), id1, inbox.Duplicate)
	s.effects(t, id1, 1)
	require.Zero(t, s.Counted(t))
}
