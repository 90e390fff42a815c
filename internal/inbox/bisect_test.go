//go:build faults

package inbox_test

import (
	"flag"
	"fmt"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/crashtest"
)

// Whether TestAPoisonRecordIsFoundByHalving goes through the whole matrix; `make test-long` asks for it.
var wholeMatrix = flag.Bool("inbox.matrix", false, "poison at each eighth of each size of batch, dying at each point")

// poisoning is a batch with one record that ends the process: in its handler, before the commit or after it.
type poisoning struct {
	batch, place int
	at           string // "": in the handler
}

func matrix() (cases []poisoning) {
	if !*wholeMatrix {
		return []poisoning{
			{200, 0, ""},
			{200, 127, ""},
			{200, 199, ""},
			{7, 3, "committing"},
			{7, 6, "committed"},
			{2, 1, ""},
			{1, 0, ""},
		}
	}
	for _, batch := range []int{1, 2, 7, 200} {
		for _, at := range []string{"", "committing", "committed"} {
			last := -1
			for eighth := range 9 {
				if place := eighth * (batch - 1) / 8; place != last {
					cases, last = append(cases, poisoning{batch, place, at}), place
				}
			}
		}
	}
	return cases
}

// A record that ends every process that handles it is found in at most ten deaths, wherever it lies in its batch, and
// ends as one dead letter; everything else is applied once and in order. One that ends a process behind its commit has
// been applied: the next process finds that out.
func TestAPoisonRecordIsFoundByHalving(t *testing.T) {
	t.Parallel()
	for _, p := range matrix() {
		t.Run(fmt.Sprintf("%d of %d %s", p.place, p.batch, p.at), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			job := b.job(nil)
			job.Made, job.Batch, job.Timeout = p.batch+50, p.batch, crashtest.Patience
			job.KillFor, job.KillAt = made(job.Made)[p.place].ID, p.at
			deaths := b.deaths(t, job)
			if p.at == "committed" {
				require.Equal(t, 1, deaths)
				b.requireAllButPoison(t, job, "")
				return
			}
			halvings := bits.Len(uint(p.batch - 1))
			require.LessOrEqual(t, deaths, max(2+halvings, 1+job.Attempts))
			require.LessOrEqual(t, deaths, 10)
			b.requireAllButPoison(t, job, job.KillFor)
		})
	}
}

// deaths starts the process again until it comes to the end of its work.
func (b *bundle) deaths(t *testing.T, job job) (deaths int) {
	t.Helper()
	for ; deaths <= 20; deaths++ {
		err := crashtest.Start(t, job).Wait(t)
		if err == nil {
			return deaths
		}
		require.EqualError(t, err, crashtest.Killed)
	}
	require.FailNow(t, "it dies again and again")
	return deaths
}

// requireAllButPoison finds every event applied once and in order by each consumer, but for the poison and what parks
// behind it.
func (b *bundle) requireAllButPoison(t *testing.T, job job, poison string) {
	t.Helper()
	events := made(job.Made)
	var key string
	behind := int64(0)
	parked := 0
	for _, e := range events {
		if e.ID == poison {
			key, behind = e.Key, e.Version
		}
	}
	for _, e := range events {
		if e.Key == key && e.Version > behind {
			parked++
		}
	}
	dead := 0
	if poison != "" {
		dead = 1
		require.Equal(t, []string{"test " + poison}, b.List(t,
			`select consumer || ' ' || event_id from dead_letter where code = 'process_died'`))
	}
	require.Equal(t, dead+parked, b.Count(t, `select count(*) from dead_letter`), "nothing else is given up")
	b.requireOnceInOrder(t, max(1, job.Consumers)*len(events)-dead-parked)
	require.Zero(t, b.Count(t, `select count(*) from inbox_attempt`))
	require.Zero(t, b.Count(t, `select count(*) from inbox_owner`), "the last one stopped cleanly")
}

// Several partitions of several consumers are in flight in the process that dies, and in the next one, and the next:
// which of them it was is found all the same, and none of the others is given up, though a record may end no more than
// two processes.
func TestAPoisonRecordIsFoundAmongManyPartitions(t *testing.T) {
	t.Parallel()
	for _, batch := range []int{1, 30} {
		t.Run(fmt.Sprint(batch), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			job := b.job(nil)
			job.Made, job.Partitions, job.Consumers, job.Batch, job.Attempts = 70, 3, 2, batch, 2
			job.KillFor = made(job.Made)[21].ID
			require.LessOrEqual(t, b.deaths(t, job), 2+bits.Len(uint(batch-1))+1)
			b.requireAllButPoison(t, job, job.KillFor)
		})
	}
}

// A process that is killed costs its batch one repetition, and its successor three statements more than it would have
// needed: one that reads what is suspected, one that finds that the batch has not been processed, one that counts it.
func TestAnOrdinaryDeathCostsOneRepetition(t *testing.T) {
	t.Parallel()
	b := setup(t)
	job := b.job(nil)
	job.Made, job.Batch, job.Count = 200, 200, true
	clean := crashtest.Start(t, job)
	require.NoError(t, clean.Wait(t))
	b.Exec(t, `truncate ledger, inbox, inbox_watermark`)
	armed := job
	armed.CrashAt, armed.CrashHit = "inbox.test.committing", 1
	killed := crashtest.Start(t, armed)
	require.EqualError(t, killed.Wait(t), crashtest.Killed)
	require.Equal(t, 200, killed.Count("handling"))
	next := crashtest.Start(t, job)
	require.NoError(t, next.Wait(t))
	require.Equal(t, 200, next.Count("handling"), "once more")
	require.Equal(t, statementsOf(t, clean)+3, statementsOf(t, next))
	b.requireAllButPoison(t, job, "")
}

func statementsOf(t *testing.T, p *crashtest.Process) (n int) {
	t.Helper()
	for n = range 1000 {
		if p.Count(fmt.Sprintf("statements %04d", n)) > 0 {
			return n
		}
	}
	require.FailNow(t, "the process has not said how many statements it took")
	return n
}
