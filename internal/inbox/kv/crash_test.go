//go:build faults

package kv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/fault"
	"example.com/twinbox/test/crashtest"
	"example.com/twinbox/test/natsserver"
)

// delivery is a child process's work: one event, whose effect is a line in a file.
type delivery struct {
	URL, File string
	CrashAt   string
}

func init() { crashtest.Child(handleOne) }

func handleOne(d delivery) error {
	ctx := context.Background()
	connection, err := nats.Connect(d.URL)
	if err != nil {
		return err
	}
	defer connection.Close()
	js, err := jetstream.New(connection)
	if err != nil {
		return err
	}
	store, err := Bucket(ctx, js, BucketConfig{Name: "inbox"})
	if err != nil {
		return err
	}
	cfg := quiet(prometheus.NewRegistry())
	cfg.Log = slog.New(slog.NewTextHandler(os.Stdout, nil))
	in, err := New(store, cfg)
	if err != nil {
		return err
	}
	if d.CrashAt != "" {
		fault.Arm(d.CrashAt, crashtest.Die)
	}
	outcome, err := in.Process(ctx, "test", "id-1", func(context.Context) error {
		file, err := os.OpenFile(d.File, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = file.WriteString("effect\n")
		return errors.Join(err, file.Close())
	})
	fmt.Println("outcome", outcome)
	return err
}

func TestAProcessThatDiesBesideItsEffect(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		point            string
		effects, counted int
		outcome          Outcome
	}{
		{"inbox.kv.claimed", 1, 1, Applied},
		{"inbox.kv.handled", 2, 1, Applied},
		{"inbox.kv.marked", 1, 0, Duplicate},
	} {
		t.Run(c.point, func(t *testing.T) {
			t.Parallel()
			server := natsserver.ForTest(t)
			job := delivery{URL: server.URL(), File: t.TempDir() + "/effects"}
			armed := job
			armed.CrashAt = c.point
			require.Equal(t, crashtest.Killed, crashtest.Start(t, armed).Wait(t).Error())
			successor := crashtest.Start(t, job)
			require.NoError(t, successor.Wait(t))
			require.Equal(t, 1, successor.Count("outcome "+string(c.outcome)))
			require.Equal(t, c.counted, successor.Count("time="), "lines of the log: one for each that may be a second one")
			again := crashtest.Start(t, job)
			require.NoError(t, again.Wait(t))
			require.Equal(t, 1, again.Count("outcome "+string(Duplicate)))
			content, err := os.ReadFile(job.File)
			require.NoError(t, err)
			require.Equal(t, c.effects, strings.Count(string(content), "effect\n"))
		})
	}
}
