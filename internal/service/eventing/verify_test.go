package eventing_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/internal/verify"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

// A running node compares all that it wrote and consumed, on both edges. A check of its own that finds something is
// asked again after the pause; meanwhile no other request gets a verdict. The last one is in the metrics, and none
// before.
func TestANodeVerifiesItself(t *testing.T) {
	t.Parallel()
	topic := kafkatest.Group(t)
	cfg := environ(t, pgtest.DSN(pgtest.New(t, sets...)), kafkatest.Brokers(t)[0])
	ensureTopic(t, cfg, topic)
	b := open(t, cfg, cfg.Topics(topic)...)
	mux, handled := inbox.NewMux(), make(chan struct{}, 10)
	inbox.Handle(mux, pingedEvent, func(context.Context, pgx.Tx, event.Event, pinged) error { return nil })
	require.NoError(t, b.node.Consume(eventing.Consumer{
		Name: "test.verified", Topic: topic, Handlers: mux, Order: inbox.Strict,
		OnOutcome: func(event.Event, inbox.Outcome) { handled <- struct{}{} },
	}))
	var wrong []verify.Finding
	verifier := eventing.NewVerifier(b.node, verify.Check{
		Name: "own", Run: func(context.Context, pgx.Tx) ([]verify.Finding, error) { return wrong, nil },
	})
	b.serve(t)
	_, known := b.scrape(t)("verify_")
	require.False(t, known)
	b.add(t, topic, "key")
	b.add(t, topic, "key")
	<-handled
	<-handled
	var verdict *verify.Verdict
	testkit.Until(t, func() bool { // what is handled is committed a moment later
		var err error
		verdict, err = verifier.Run(t.Context(), eventing.Verification{})
		require.NoError(t, err)
		return verdict.Consumed[0].Pending == 0
	})
	require.Empty(t, verdict.Findings)
	require.True(t, verdict.Whole())
	require.EqualValues(t, 2, verdict.Produced[0].Records)
	require.EqualValues(t, 2, verdict.Consumed[0].Handled)
	require.Equal(t, []string{"own"}, verdict.Checks)

	wrong = []verify.Finding{{EventID: "e-1", Detail: "no mail"}}
	verifier.LookAgainAfter(func(ctx context.Context) error {
		_, err := verifier.Run(ctx, eventing.Verification{})
		require.ErrorIs(t, err, eventing.ErrVerifying)
		return nil
	})
	verdict, err := verifier.Run(t.Context(), eventing.Verification{})
	require.NoError(t, err)
	require.Equal(t, []verify.Finding{
		{Kind: verify.Broken, Rule: "own", Subject: "own", EventID: "e-1", Detail: "no mail"},
	}, verdict.Findings)
	metrics := b.scrape(t)
	broken, _ := metrics(`verify_findings{kind="broken"}`)
	lost, known := metrics(`verify_findings{kind="lost"}`)
	require.Equal(t, []float64{1, 0}, []float64{broken, lost})
	require.True(t, known)
	age, known := metrics("verify_age_seconds")
	require.True(t, known)
	require.Less(t, age, time.Hour.Seconds())
}
