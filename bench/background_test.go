package main

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBackgroundThatEndsEarlyCutsTheMeasurementShort(t *testing.T) {
	t.Parallel()
	broken := errors.New("no such table")
	b := inBackground(t.Context(), func(context.Context) error { return broken })
	err := b.during(t.Context(), func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	require.ErrorIs(t, err, errEndedEarly)
	require.ErrorIs(t, err, broken)
	require.ErrorIs(t, b.stop(), broken)
}

func TestBackgroundIsStoppedAndWaitedFor(t *testing.T) {
	t.Parallel()
	b := inBackground(t.Context(), func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	})
	require.NoError(t, b.during(t.Context(), func(context.Context) error { return nil }))
	require.NoError(t, b.stop())
	require.NoError(t, b.stop(), "twice")
}
