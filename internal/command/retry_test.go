package command_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/command"
	"example.com/twinbox/internal/outbox"
)

func TestALostRaceIsRunAgainAndNothingElseIs(t *testing.T) {
	t.Parallel()
	lost := fmt.Errorf("store: %w", outbox.ErrVersionConflict)
	other := errors.New("other")
	for name, test := range map[string]struct {
		attempts int
		answers  []error // of each attempt
		want     error
		runs     int
	}{
		"won at once":           {5, []error{nil}, nil, 1},
		"won after two":         {5, []error{lost, lost, nil}, nil, 3},
		"lost each time":        {3, []error{lost, lost, lost}, outbox.ErrVersionConflict, 3},
		"one attempt":           {1, []error{lost}, outbox.ErrVersionConflict, 1},
		"no attempt is one":     {0, []error{lost}, outbox.ErrVersionConflict, 1},
		"another error ends it": {5, []error{lost, other}, other, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs := 0
			got, err := command.Retry(t.Context(), test.attempts, func(context.Context) (int, error) {
				runs++
				return runs, test.answers[runs-1]
			})
			require.ErrorIs(t, err, test.want)
			require.Equal(t, test.runs, runs)
			require.Equal(t, test.runs, got)
		})
	}
}

func TestALostRaceIsNotRunAgainWithoutACaller(t *testing.T) {
	t.Parallel()
	ctx, hangUp := context.WithCancel(t.Context())
	runs := 0
	_, err := command.Retry(ctx, 1000, func(context.Context) (any, error) {
		if runs++; runs == 2 {
			hangUp()
		}
		return nil, outbox.ErrVersionConflict
	})
	require.ErrorIs(t, err, outbox.ErrVersionConflict)
	require.Equal(t, 2, runs)
}

func TestALostRaceIsAConflict(t *testing.T) {
	t.Parallel()
	problem := command.Problem(fmt.Errorf("store: %w", outbox.ErrVersionConflict))
	require.Equal(t, http.StatusConflict, problem.Status)
	require.Equal(t, command.CodeVersionMismatch, problem.Code)
	require.Zero(t, problem.RetryAfter, "waiting is not what helps")
}

// Processes add to one aggregate without a lock.
func TestRacingCommandsAllHappen(t *testing.T) {
	t.Parallel()
	pool := open(t)
	box, err := outbox.New(outbox.Config{Source: "/test"})
	require.NoError(t, err)
	const writers, each = 4, 5
	add := func(ctx context.Context) (int64, error) { return addToStock(ctx, pool, box) }
	var group errgroup.Group
	for range writers {
		group.Go(func() error {
			for range each {
				if _, err := command.Retry(t.Context(), 1000, add); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	var events, newest int64
	require.NoError(t, pool.QueryRow(t.Context(), `select count(*), max(version) from outbox`).Scan(&events, &newest))
	require.EqualValues(t, writers*each, events)
	require.Equal(t, events, newest)
}
