package eventing_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

// loggedLine is one line of a service's log.
type loggedLine struct {
	Level, Msg, Line, Outcome, Code, Consumer, Table string

	EventID  string `json:"event_id"`
	Repeated int
}

// linesOf reads a log in JSON.
func linesOf(t *testing.T, text string) (read []loggedLine) {
	t.Helper()
	for raw := range strings.Lines(text) {
		var line loggedLine
		require.NoError(t, json.Unmarshal([]byte(raw), &line), raw)
		read = append(read, line)
	}
	return read
}

// A storm of poison and a flood of redeliveries are a few lines each: the first in full, and how many there were. What
// became of every single one is in the table and in the metrics.
func TestAStormIsAFewLines(t *testing.T) {
	t.Parallel()
	const poison, duplicates = 1000, 10_000
	cfg := environ(t, pgtest.DSN(pgtest.New(t, sets...)), kafkatest.Brokers(t)[0])
	topic := kafkatest.Group(t)
	ensureTopic(t, cfg, topic)
	log := &lines{}
	b := openWith(t, slog.New(slog.NewJSONHandler(log, nil)), cfg)
	var outcomes [2]atomic.Int64
	mux := inbox.NewMux()
	inbox.Handle(mux, pingedEvent, func(context.Context, pgx.Tx, event.Event, pinged) error { return nil })
	require.NoError(t, b.node.Consume(eventing.Consumer{
		Name: "test.storm", Topic: topic, Handlers: mux,
		OnOutcome: func(_ event.Event, o inbox.Outcome) {
			switch o {
			case inbox.Dead:
				outcomes[0].Add(1)
			case inbox.Duplicate:
				outcomes[1].Add(1)
			}
		},
	}))
	b.serve(t)
	publisher := kafkatest.NewSender(t, cfg.Kafka.Brokers)
	defer func() { require.NoError(t, publisher.Close()) }()
	var storm []*message.Message
	once := ping(`{"n":1}`)
	for n := range duplicates + 1 {
		storm = append(storm, once.Copy())
		if n < poison {
			storm = append(storm, ping(`{"n":"no number"}`))
		}
	}
	require.NoError(t, publisher.Publish(topic, storm...))
	testkit.Until(t, func() bool {
		return outcomes[0].Load() == poison && outcomes[1].Load() == duplicates
	}, "%v", &outcomes)
	b.node.FlushLog()

	all := linesOf(t, log.String())
	require.Less(t, len(all), 30, "%v", all)
	of := map[string][]loggedLine{}
	for _, line := range all {
		of[line.Msg] = append(of[line.Msg], line)
	}
	dead := of["event given up"]
	require.NotEmpty(t, dead)
	require.NotEmpty(t, dead[0].EventID)
	require.Equal(t, "payload_mismatch", dead[0].Code)
	require.Equal(t, "test.storm", dead[0].Consumer)
	require.Equal(t, "public.dead_letter", dead[0].Table, "it leads to the row, with or without operations")
	require.Equal(t, poison, 1+repeated(dead), "each is counted")
	require.Equal(t, duplicates, 1+repeated(of["event settled"]))
}

func repeated(of []loggedLine) (sum int) {
	for _, line := range of {
		sum += line.Repeated
	}
	return sum
}

func ping(data string) *message.Message {
	id := uuid.Must(uuid.NewV7()).String()
	return event.Event{
		ID: id, Source: "/test", Type: "test.pinged.v1", Key: id, Version: 1, // a dead letter holds up its own key alone
		Time: time.Now().UTC(), Data: []byte(data),
	}.Message()
}
