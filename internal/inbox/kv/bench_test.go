package kv

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/natsserver"
)

// Over loopback. "synced" writes each message to disk before the answer.
func BenchmarkProcess(b *testing.B) {
	for _, durable := range []bool{false, true} {
		name := "as NATS comes"
		if durable {
			name = "synced"
		}
		b.Run(name, func(b *testing.B) {
			server, err := natsserver.Start(natsserver.Config{Dir: b.TempDir(), Durable: durable})
			require.NoError(b, err)
			defer server.Shutdown()
			connection, err := nats.Connect(server.ClientURL())
			require.NoError(b, err)
			defer connection.Close()
			js, err := jetstream.New(connection)
			require.NoError(b, err)
			store, err := Bucket(b.Context(), js, BucketConfig{Name: "inbox", TTL: time.Hour})
			require.NoError(b, err)
			open := func() *Inbox {
				in, err := New(store, quiet(prometheus.NewRegistry()))
				require.NoError(b, err)
				return in
			}
			process := func(in *Inbox, id string, want Outcome) {
				outcome, err := in.Process(b.Context(), "bench", id, func(context.Context) error { return nil })
				if err != nil || outcome != want {
					b.Fatal(outcome, err)
				}
			}
			in, n := open(), 0
			b.Run("new", func(b *testing.B) {
				for b.Loop() {
					process(in, fmt.Sprint("id-", n), Applied)
					n++
				}
			})
			b.Run("known to the store", func(b *testing.B) {
				others := make([]*Inbox, 0, 1024)
				for range 1024 {
					others = append(others, open())
				}
				i := 0
				for b.Loop() {
					process(others[i/n%len(others)], fmt.Sprint("id-", i%n), Duplicate)
					i++
				}
			})
			b.Run("known to the cache", func(b *testing.B) {
				for b.Loop() {
					process(in, fmt.Sprint("id-", n-1), Duplicate)
				}
			})
		})
	}
}
