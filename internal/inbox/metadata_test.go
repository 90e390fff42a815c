package inbox_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox"
)

func (b *bundle) metadata(t *testing.T, id string) string {
	t.Helper()
	found, err := inbox.Lookup(t.Context(), b.Pool, []string{b.Config.Consumer}, id)
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, inbox.Applied, found[0].Outcome)
	return string(found[0].Metadata)
}

func TestAHandlerPutsMetadataBesideItsID(t *testing.T) {
	t.Parallel()
	b := setup(t)
	in := b.Inbox(t)
	process := func(id string, metadata ...map[string]any) error {
		_, err := in.Process(t.Context(), id, func(ctx context.Context, tx pgx.Tx) error {
			for _, m := range metadata {
				if err := inbox.PutMetadata(ctx, tx, m); err != nil {
					return err
				}
			}
			return nil
		})
		return err
	}
	require.NoError(t, process("none"))
	require.Empty(t, b.metadata(t, "none"))
	require.NoError(t, process("id", map[string]any{"n": 1}, map[string]any{"mail": "m", "outcome": "failed"}))
	require.JSONEq(t, `{"mail":"m","outcome":"failed"}`, b.metadata(t, "id"))
	require.NoError(t, process("id", map[string]any{"n": 2}), "a duplicate runs nothing")
	require.JSONEq(t, `{"mail":"m","outcome":"failed"}`, b.metadata(t, "id"))

	long := map[string]any{"long": strings.Repeat("x", inbox.MaxMetadataBytes)}
	err := process("long", map[string]any{"n": 1}, long)
	require.ErrorContains(t, err, "at most 4096 bytes of JSON")
	require.Equal(t, failure.Permanent, failure.Classify(err))
	require.NoError(t, process("long"))
	require.Empty(t, b.metadata(t, "long"), "the failed attempt left nothing")

	_, err = in.Process(t.Context(), "savepoint", func(ctx context.Context, tx pgx.Tx) error {
		return pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return inbox.PutMetadata(ctx, tx, long) })
	})
	require.ErrorContains(t, err, "needs a handler's transaction")
}

func TestEachEventOfABatchHasItsOwnMetadata(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, handle := b.handle(t, func(ctx context.Context, tx pgx.Tx, e event.Event, _ testData) error {
		return inbox.PutMetadata(ctx, tx, map[string]any{"version": e.Version})
	})
	events := versions("key-1", 1, 2, 3)()
	_, err := handle(t.Context(), records(t, t.Context(), events...))
	require.NoError(t, err)
	for i, e := range events {
		require.JSONEq(t, fmt.Sprintf(`{"version":%d}`, i+1), b.metadata(t, e.ID))
	}
}
