package e2e

import (
	"flag"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

var (
	outageLasts = flag.Duration("e2e.outage", time.Second, "how long a dependency is down")
	outages     = flag.Int("e2e.outages", 1, "how often it goes down")
)

func TestTheDatabaseIsAway(t *testing.T) {
	inProcess(t)
	db, gone := durableDatabase(t)
	h := newStackOn(t, ownBrokers(t), db, "INBOX_RETRY_MIN=1s", "KAFKA_SESSION_TIMEOUT=6s")
	customer, notification := h.watch(t, customerService), h.watch(t, notificationService)
	crowd := h.gather(t)
	var recovered []time.Duration
	for range *outages {
		crowd.await(t, 10)
		gone.down()
		customer.requireNotReady(t, gone.name)
		crowd.awaitRefusals(t, 3*fewLines) // a refusal has no line of its own
		testkit.Until(t, func() bool { return notification.readyz(t).code == http.StatusOK },
			"the other service has a database of its own")
		rest(t, *outageLasts)
		recovered = append(recovered, h.recover(t, gone, customer))
	}
	h.requireMadeUpFor(t, crowd)
	customer.requireSaidOnce(t, gone.name, *outages)
	customer.requireNothingToSee(t, h.customerDB)
	report(t, gone.name, recovered, crowd)
}

func TestTheBrokerIsAway(t *testing.T) {
	parallel(t)
	addr, gone := durableBroker(t)
	db := pgtest.New(t, migrations.ForCustomer()...)
	h := newStackOn(t, []string{addr}, db, "INBOX_RETRY_MIN=1s", "KAFKA_SESSION_TIMEOUT=6s")
	customer, notification := h.watch(t, customerService), h.watch(t, notificationService)
	crowd := h.gather(t)
	var recovered []time.Duration
	for range *outages {
		crowd.await(t, 10)
		gone.down()
		customer.requireNotReady(t, gone.name)
		notification.requireNotReady(t, gone.name)
		crowd.await(t, 10)
		rest(t, *outageLasts)
		recovered = append(recovered, h.recover(t, gone, customer, notification))
	}
	h.requireMadeUpFor(t, crowd)
	require.Zero(t, crowd.refusals(), "a signup needs no broker")
	customer.requireSaidOnce(t, gone.name, *outages)
	notification.requireSaidOnce(t, gone.name, *outages)
	report(t, gone.name, recovered, crowd)
}

// gather brings a calm crowd: the backlog of an outage must not be one of its own.
func (h *stack) gather(t *testing.T) *crowd {
	t.Helper()
	c := &crowd{person: h.client(), habits: habits{4, 3, 200 * time.Millisecond, 5000}}
	c.come(t, "a")
	return c
}

func (h *stack) recover(t *testing.T, gone dependency, services ...*watched) time.Duration {
	t.Helper()
	gone.up()
	began := time.Now()
	for _, s := range services {
		testkit.Until(t, func() bool { return s.readyz(t).code == http.StatusOK },
			"%s never ready again", s.name)
	}
	h.customerDB.Reset() // the test's own connections may be of a server that was killed
	h.awaitHandled(t, 1)
	return time.Since(began)
}

func (h *stack) requireMadeUpFor(t *testing.T, crowd *crowd) {
	t.Helper()
	crowd.goHome()
	require.Empty(t, crowd.strange, "answers that no client should get")
	h.requireWhole(t, 1)
	require.Empty(t, h.lost(t, contract.TopicUsers, crowd.accepted))
}

func report(t *testing.T, name string, recovered []time.Duration, crowd *crowd) {
	t.Helper()
	slices.Sort(recovered)
	at := func(share float64) time.Duration { return recovered[int(share*float64(len(recovered)-1)+0.5)] }
	fmt.Printf("outages of the %s: %d of %s, %d requests, %d refused; back after p50 %s, p95 %s, max %s\n", name,
		len(recovered), *outageLasts, crowd.taken.Load(), crowd.refusals(), at(0.5), at(0.95), at(1))
}
