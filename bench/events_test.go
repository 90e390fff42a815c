package main

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
)

func TestPayloadIsJSONOfItsSizeWithItsNumber(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 99_999, 5_000_000} {
		require.Len(t, payload(n), payloadBytes)
		require.True(t, json.Valid(payload(n)))
		got, err := numberOf(payload(n))
		require.NoError(t, err)
		require.Equal(t, n, got)
	}
	for _, foreign := range []string{"", "{}", `{"number":x,`, `{"number":-1,`} {
		_, err := numberOf([]byte(foreign))
		require.ErrorIs(t, err, errForeign)
	}
}

func TestCorpusCountsVersionsPerKey(t *testing.T) {
	t.Parallel()
	c := corpus{topic: "t", keys: 10}
	require.Equal(t, int64(3), c.event(23).Version, "the key's third event")
	require.Equal(t, c.event(3).Key, c.event(23).Key)
	signups := corpus{topic: "t"}
	require.Equal(t, int64(1), signups.event(13).Version)
	require.NotEqual(t, signups.event(3).Key, signups.event(13).Key, "signups have a key each")
	id, err := uuid.Parse(signups.event(3).Key)
	require.NoError(t, err)
	require.Equal(t, uuid.Version(7), id.Version())
}

type partialError map[int]error

func (partialError) Error() string                  { return "some failed" }
func (p partialError) FailedIndexes() map[int]error { return p }

func TestTakenMessagesAreNoted(t *testing.T) {
	t.Parallel()
	a := newArrivals[string](0)
	var msgs []*message.Message
	for n := range 3 {
		msgs = append(msgs, corpus{topic: "t"}.event(n).Message())
	}
	noteTaken(a, msgs, errors.New("all failed"))
	require.Empty(t, a.at)
	noteTaken(a, msgs, partialError{1: errors.New("no")})
	require.Len(t, a.at, 2, "the call names the one that failed")
	first := a.of("0")
	noteTaken(a, msgs, nil)
	require.Len(t, a.at, 3)
	require.Equal(t, first, a.of("0"), "sent again is not later")
	noteTaken(a, []*message.Message{message.NewMessage("warm", []byte("{}"))}, nil)
	require.Len(t, a.at, 3, "not of this run")
}

func TestArrivalsAreAwaited(t *testing.T) {
	t.Parallel()
	a := newArrivals[string](0)
	waited := make(chan error)
	go func() { waited <- a.await(t.Context(), 2) }()
	for _, user := range []string{"a", "a", "b"} {
		a.note(user)
	}
	require.NoError(t, <-waited)
	require.NoError(t, a.await(t.Context(), 1), "there already")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	require.EqualError(t, a.await(ctx, 3), "2 of 3 events arrived: enough")
}

// A duplicate is neither an additional event nor out of order.
func TestTallyOfATopic(t *testing.T) {
	t.Parallel()
	record := func(n int) *message.Message {
		m := message.NewMessage("", payload(n))
		m.Metadata[event.KeyMetadata] = strconv.Itoa(n % 2)
		return m
	}
	for name, c := range map[string]struct {
		numbers              []int // of two keys, the even ones and the odd ones
		distinct, inversions int
	}{
		"in order":                {[]int{0, 1, 2, 3}, 4, 0},
		"keys side by side":       {[]int{1, 3, 0, 2}, 4, 0},
		"all again":               {[]int{0, 1, 2, 3, 0, 1, 2, 3}, 4, 0},
		"out of order":            {[]int{2, 0, 1, 3}, 4, 1},
		"lost":                    {[]int{0, 2, 3}, 3, 0},
		"lost, another one twice": {[]int{0, 1, 2, 2}, 3, 0},
		"late":                    {[]int{0, 2, 4, 1, 3, 2}, 5, 0},
	} {
		tally := tally{seen: make([]bool, 5), newest: map[string]int{}}
		for _, n := range c.numbers {
			require.NoError(t, tally.count(record(n)), name)
		}
		require.Equal(t, []int{c.distinct, c.inversions}, []int{tally.distinct, tally.inversions}, name)
	}
	tally := tally{seen: make([]bool, 5), newest: map[string]int{}}
	require.ErrorIs(t, tally.count(record(5)), errForeign, "of another run")
	require.ErrorIs(t, tally.count(message.NewMessage("", nil)), errForeign, "of another program")
}
