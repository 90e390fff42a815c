package binaries

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// script writes a program that answers like postgres of that version would.
func script(t *testing.T, dir, version string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for _, name := range []string{"initdb", "postgres"} {
		text := "#!/bin/sh\necho \"" + name + " (PostgreSQL) " + version + "\"\n"
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
}

// fakeClient is a client that fetches such scripts.
func fakeClient(t *testing.T, version string, fetches *atomic.Int32) client {
	t.Helper()
	return client{name: "fake", fetch: func(_ context.Context, _ build, _, into string) error {
		fetches.Add(1)
		script(t, filepath.Join(into, "bin"), version)
		return nil
	}}
}

func brokenClient(name string) client {
	return client{name: name, fetch: func(context.Context, build, string, string) error {
		return errors.New("no route to " + name)
	}}
}

func options(t *testing.T, clients ...client) Options {
	t.Helper()
	return Options{SkipInstalled: true, CacheDir: filepath.Join(t.TempDir(), "cache"), clients: clients}
}

func TestFetchOnce(t *testing.T) {
	t.Parallel()
	var fetches atomic.Int32
	var said strings.Builder
	opts := options(t, fakeClient(t, "18.4", &fetches))
	opts.Progress = &said

	for range 2 {
		dir, err := Ensure(t.Context(), opts)
		require.NoError(t, err)
		require.True(t, complete(dir))
		require.True(t, filepath.IsAbs(dir))
	}
	require.EqualValues(t, 1, fetches.Load())
	require.Equal(t, 2, strings.Count(said.String(), "\n"), said.String())
	requireTidy(t, opts.CacheDir)
}

func TestFetchConcurrently(t *testing.T) {
	t.Parallel()
	var fetches atomic.Int32
	opts := options(t, fakeClient(t, "18.4", &fetches))
	var group sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		group.Go(func() { _, errs[i] = Ensure(t.Context(), opts) })
	}
	group.Wait()
	require.NoError(t, errors.Join(errs...))
	require.EqualValues(t, 1, fetches.Load(), "the others wait for the one that fetches")
}

func TestFetchTakesTheNextClient(t *testing.T) {
	t.Parallel()
	var fetches atomic.Int32
	absent := client{name: "absent", needs: []string{"no-such-program-here"}}
	opts := options(t, absent, brokenClient("first"), fakeClient(t, "18.4", &fetches))
	_, err := Ensure(t.Context(), opts)
	require.NoError(t, err)
	requireTidy(t, opts.CacheDir)
}

func TestFetchThatFails(t *testing.T) {
	t.Parallel()
	var fetches atomic.Int32
	tests := map[string]struct {
		clients []client
		want    []string
	}{
		"no client":     {[]client{{name: "absent", needs: []string{"no-such-program-here"}}}, []string{"PG_BIN", "npm"}},
		"no way":        {[]client{brokenClient("one"), brokenClient("two")}, []string{"no route to one", "no route to two"}},
		"other version": {[]client{fakeClient(t, "17.1", &fetches)}, []string{`version "17", want 18`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := options(t, test.clients...)
			_, err := Ensure(t.Context(), opts)
			require.ErrorIs(t, err, ErrNotFound)
			for _, want := range test.want {
				require.ErrorContains(t, err, want)
			}
			requireTidy(t, opts.CacheDir)
		})
	}
}

func TestFetchThatIsCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	opts := options(t, client{name: "slow", fetch: func(ctx context.Context, _ build, work, _ string) error {
		cancel()
		return run(ctx, work, "sleep", "60")
	}}, brokenClient("never asked"))
	_, err := Ensure(ctx, opts)
	require.ErrorIs(t, err, context.Canceled)
	require.NotContains(t, err.Error(), "never asked")
}

// requireTidy finds nothing but what belongs in a cache folder.
func requireTidy(t *testing.T, cache string) {
	t.Helper()
	entries, err := os.ReadDir(cache)
	require.NoError(t, err)
	for _, entry := range entries {
		require.NotContains(t, entry.Name(), "fetching-")
	}
}

// The clients of this machine, for real: they need a network, so this runs when asked for.
func TestFetchForReal(t *testing.T) {
	t.Parallel()
	if os.Getenv("TWINBOX_TEST_FETCH") == "" {
		t.Skip("downloads packages; set TWINBOX_TEST_FETCH=1 to run it")
	}
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.True(t, c.present(), "not on this machine: %v", c.needs)
			dir, err := Ensure(t.Context(), options(t, c))
			require.NoError(t, err)
			major, err := Major(t.Context(), dir)
			require.NoError(t, err)
			require.Equal(t, fetchedMajor, major)
		})
	}
}
