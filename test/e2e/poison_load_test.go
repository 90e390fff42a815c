package e2e

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/testkit"
)

var poisonFor = flag.Duration("e2e.poison", time.Second, "how long records are laid, without poison and then with it")

// recordsPerSecond is far below the consumers' rate, so the test measures waits for other records, not a backlog.
const recordsPerSecond = 200

// The test prints how much longer the healthy records take.
func TestPoisonUnderLoad(t *testing.T) {
	inProcess(t)
	h := newStackOn(t, ownBrokers(t), customerDatabase(t))
	h.rememberTenDays(t)
	h.start(t, customerService)
	rows := slices.DeleteFunc(oddities(), func(row oddity) bool { return row.code == "" })
	h.layMany(t, nil) // the first ones wait for the consumers to join
	clean := h.layMany(t, nil)
	poisoned := h.layMany(t, rows)
	fmt.Printf("latency of healthy events, %d/s: p50 %s, p99 %s; with 1 %% poison p50 %s, p99 %s: ratio %.2f and %.2f\n",
		recordsPerSecond, clean.p50, clean.p99, poisoned.p50, poisoned.p99,
		float64(poisoned.p50)/float64(clean.p50), float64(poisoned.p99)/float64(clean.p99))
}

type latency struct {
	arrived  int
	p50, p99 time.Duration
}

// layMany writes an oddity for each hundredth record, and returns the times of the healthy ones until their
// transaction.
func (h *stack) layMany(t *testing.T, odd []oddity) (found latency) {
	t.Helper()
	producer := h.producer(t, func(cfg *sarama.Config) { cfg.Producer.Partitioner = sarama.NewHashPartitioner })
	before := count(t, h.customerDB, `select count(*) from dead_letter where consumer = 'customer.profile'`)
	tick := time.NewTicker(time.Second / recordsPerSecond)
	defer tick.Stop()
	var ids []string
	var laid []time.Time
	broken, began := 0, time.Now()
	for i := 1; time.Since(began) < *poisonFor; i++ {
		record := healthy()
		if len(odd) > 0 && i%100 == 0 {
			odd[broken%len(odd)].change(record)
			broken++
		} else {
			ids, laid = append(ids, record.id()), append(laid, time.Now())
		}
		_, _, err := producer.SendMessage(record.message())
		require.NoError(t, err)
		<-tick.C
	}
	letters := 0
	testkit.Until(t, func() bool {
		letters = count(t, h.customerDB, `select count(*) from dead_letter where consumer = 'customer.profile'`)
		found = h.latencies(t, ids, laid)
		return letters == before+broken && found.arrived == len(ids)
	}, "all %d healthy ones, and each poison of %d once: %+v, %d", len(ids), broken, &found, &letters)
	return found
}

func (h *stack) latencies(t *testing.T, ids []string, laid []time.Time) (found latency) {
	t.Helper()
	var p50, p99 float64
	err := h.customerDB.QueryRow(context.WithoutCancel(t.Context()), `
		select count(*), coalesce(percentile_cont(0.5) within group (order by took), 0),
			coalesce(percentile_cont(0.99) within group (order by took), 0)
		from (select extract(epoch from p.updated_at - m.at)::float8 as took from profile p
			join unnest($1::uuid[], $2::timestamptz[]) as m (id, at) on m.id = p.user_id) x`, ids, laid).
		Scan(&found.arrived, &p50, &p99)
	require.NoError(t, err)
	found.p50, found.p99 = time.Duration(p50*float64(time.Second)), time.Duration(p99*float64(time.Second))
	return found
}
