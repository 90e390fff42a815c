package e2e

import (
	"flag"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/service"
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
		crowd.awaitRefusals(t, 5)
		testkit.Until(t, func() bool { return notification.readyz(t).code == http.StatusOK },
			"the other service has a database of its own")
		rest(t, *outageLasts)
		recovered = append(recovered, h.recover(t, gone, crowd, customer))
	}
	h.requireMadeUpFor(t, crowd)
	customer.requireSaidOnce(t, gone.name, *outages)
	report(t, gone.name, recovered, crowd)
}

func TestAnOutageUnderLoadIsAFewLines(t *testing.T) {
	inProcess(t)
	db, gone := durableDatabase(t)
	h := newStackOn(t, ownBrokers(t), db, "INBOX_RETRY_MIN=100ms", "KAFKA_SESSION_TIMEOUT=6s", "RATE_LIMIT=0")
	customer := h.watch(t, customerService)
	crowd := h.gather(t)
	crowd.await(t, 10)
	before := len(customer.log.lines())
	gone.down()
	crowd.awaitRefusals(t, 5)
	const requests, clients = 1500, 8
	var refused atomic.Int64
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for range requests / clients {
				answer, err := crowd.person.try(t.Context(), http.MethodPost, "/v1/signups",
					`{"email":"ada@example.org","name":"Ada"}`, nil)
				if err == nil && answer.Status == http.StatusServiceUnavailable {
					refused.Add(1)
				}
			}
		})
	}
	all.Wait()
	require.Greater(t, refused.Load(), int64(requests*9/10))
	gone.up()
	testkit.Until(t, func() bool { return customer.readyz(t).code == http.StatusOK })
	crowd.await(t, 10)
	crowd.goHome()
	lines := slices.DeleteFunc(customer.log.lines()[before:], func(l line) bool {
		return l.Level == "INFO" && l.Dependency == ""
	})
	require.LessOrEqual(t, len(lines), fewLines, "%v", lines)
	customer.requireSaidOnce(t, gone.name, 1)
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
		recovered = append(recovered, h.recover(t, gone, crowd, customer, notification))
	}
	h.requireMadeUpFor(t, crowd)
	require.Zero(t, crowd.refusals(), "a signup needs no broker")
	customer.requireSaidOnce(t, gone.name, *outages)
	notification.requireSaidOnce(t, gone.name, *outages)
	report(t, gone.name, recovered, crowd)
}

func (h *stack) recover(t *testing.T, gone dependency, crowd *crowd, services ...*watched) time.Duration {
	t.Helper()
	gone.up()
	began := time.Now()
	for _, s := range services {
		testkit.Until(t, func() bool { return s.readyz(t).code == http.StatusOK },
			"%s never ready again", s.name)
	}
	crowd.await(t, 1)
	id := crowd.latest()
	testkit.Until(t, func() bool {
		return count(t, h.customerDB, `select count(*) from profile where user_id = '`+id+`'`) == 1 &&
			count(t, h.notificationDB, `select count(*) from mail where user_id = '`+id+`'`) == 1
	}, "the event of a signup after the outage never arrived")
	return time.Since(began)
}

func (h *stack) requireMadeUpFor(t *testing.T, crowd *crowd) {
	t.Helper()
	n := crowd.goHome()
	require.Empty(t, crowd.strange, "answers that no client should get")
	for _, row := range []struct {
		db  *pgxpool.Pool
		sql string
	}{
		{h.customerDB, `select count(*) from users`},
		{h.customerDB, `select count(*) from profile`},
		{h.notificationDB, `select count(*) from contact`},
		{h.notificationDB, `select count(*) from lease where state = 'done'`},
		{h.customerDB, `select count(*) from verification_mail`},
		{h.customerDB, `select count(*) from outbox`},
		{h.notificationDB, `select count(*) from outbox`},
	} {
		testkit.Until(t, func() bool { return count(t, row.db, row.sql) >= n }, row.sql)
		require.Equal(t, n, count(t, row.db, row.sql), row.sql)
	}
	require.Len(t, h.box.Messages(), n, "one mail each")
	for _, db := range []*pgxpool.Pool{h.customerDB, h.notificationDB} {
		testkit.Until(t, func() bool { return count(t, db, `select count(*) from outbox_parked`) == 0 },
			"a key that waits for the broker's answer does not stay parked")
	}
	h.awaitRecorded(t)
	h.judge(t)
}

func report(t *testing.T, name string, recovered []time.Duration, crowd *crowd) {
	t.Helper()
	slices.Sort(recovered)
	at := func(share float64) time.Duration { return recovered[int(share*float64(len(recovered)-1)+0.5)] }
	fmt.Printf("outages of the %s: %d of %s, %d signups, %d refused; back after p50 %s, p95 %s, max %s\n", name,
		len(recovered), *outageLasts, crowd.accepted(), crowd.refusals(), at(0.5), at(0.95), at(1))
}

func (w *watched) requireNotReady(t *testing.T, name string) {
	t.Helper()
	var got readiness
	testkit.Until(t, func() bool {
		got = w.readyz(t)
		var failing []string
		for _, check := range got.report.Checks {
			if check.Status == service.StatusFailing {
				failing = append(failing, check.Name)
			}
		}
		return got.code == http.StatusServiceUnavailable && slices.Equal(failing, []string{name})
	}, "%s must name its %s and nothing else: %+v", w.name, name, &got)
}

func (w *watched) requireSaidOnce(t *testing.T, name string, outages int) {
	t.Helper()
	lines := w.log.lines()
	said := func(msg string) (n int) {
		for _, line := range lines {
			if line.Msg == msg && line.Dependency == name {
				n++
			}
		}
		return n
	}
	require.Equal(t, outages, said("dependency is down"), "%v", lines)
	require.Equal(t, outages, said("dependency is back"), "%v", lines)
	require.LessOrEqual(t, len(w.warnings()), fewLines*outages, "%v", w.warnings())
}

// fewLines bounds the warnings of one outage: each part writes some before the circuit opens.
const fewLines = 12
