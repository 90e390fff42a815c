package relay

import (
	"context"
	"errors"
	"flag"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/testkit"
)

// How long the broker is down in TestRelayOutlivesALongOutage. `make test-long` sets minutes.
var outageFor = flag.Duration("outbox.outage", 2*time.Second, "how long the broker is down")

func TestRelayOutlivesALongOutage(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	cfg := testRelayConfig(t, pool, l)
	cfg.BatchSize, cfg.PublishTimeout = 20, 400*time.Millisecond
	cfg.MaxSilence, cfg.patience = *outageFor/4+cfg.PublishTimeout, *outageFor/10
	r := startRelay(t, cfg)
	addMany(t, o, pool, 50, 7)
	l.AwaitDistinct(t, 50)
	testkit.Until(t, func() bool { return r.Healthy(t.Context()) == nil })

	l.Follow(func(int, string, []*message.Message) error { return errors.New("no broker") })
	outage, cancel := context.WithTimeout(t.Context(), *outageFor)
	defer cancel()
	events := 50
	for sleep(outage, *outageFor/100) { // the outage, not a wait
		addMany(t, o, pool, 10, 7)
		events += 10
	}
	testkit.Until(t, func() bool { // unless the machine was busy
		return r.unwell(t, "no broker") && number(t, pool, `select count(*) from outbox_parked`) > 0
	})

	l.Follow(nil)
	requireAll(t, pool, l.AwaitDistinct(t, events))
	awaitCaughtUp(t, pool)
	wire, _ := l.Snapshot()
	require.Len(t, wire, events, "nothing is sent twice: nothing was taken in vain")
	testkit.Until(t, func() bool {
		return r.Healthy(t.Context()) == nil && number(t, pool, `select count(*) from outbox_parked`) == 0
	})
	require.Equal(t, int64(1), number(t, pool, `select epoch from outbox_cursor`), "no other relay had to lead")
}
