//go:build faults

package e2e

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/outbox/relay"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/crashtest"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

// The campaign of make test-campaign. It ends with the first round of faults behind either bound.
var (
	campaignEvents  = flag.Int("e2e.events", 0, "run the campaign until there are so many events; 0: not at all")
	campaignMinutes = flag.Int("e2e.minutes", 60, "or until so many minutes have passed")
	campaignSeed    = flag.Uint64("e2e.seed", uint64(time.Now().UnixNano()), "order of the campaign's faults")
)

const (
	replicas = 2
	// lossEvery is the round in which commits and records are lost again: each time copies a whole database.
	lossEvery = 4
	// maxWaiting bounds what waits behind the load before the next fault comes.
	maxWaiting = 5000
)

// campaignSettings are long enough for machines that run everything on two cores. A frozen replica loses its lead and
// its partitions after them.
var campaignSettings = []string{
	"RATE_LIMIT=0", "INBOX_RETRY_MIN=100ms", "KAFKA_SESSION_TIMEOUT=8s", "KAFKA_PUBLISH_TIMEOUT=4s", "OUTBOX_LEASE=8s",
	"SMTP_TIMEOUT=5s", "MAIL_LEASE=10s", "MAIL_HEARTBEAT=2s",
}

const frozenFor = 10 * time.Second

// campaign is two replicas of each service, each a process, a database with standbys for each service, three brokers,
// and people who sign up at both replicas of Customer.
type campaign struct {
	*stack
	services map[string][]*replica
	clusters map[string]*cluster
	nodes    [3]*ownBroker
	random   *rand.Rand
	began    time.Time

	crowds   []*crowd
	crowded  int // how often people came
	accepted []acceptance
	lost     []span // in which commits were lost
	done     map[string]int
}

// span is a time in which what was accepted may be lost.
type span struct{ from, to time.Time }

// replica is one process of a service. Those that take its place have its addresses.
type replica struct {
	name    string
	role    role
	api     string
	process *crashtest.Process
}

func (r *replica) start(t *testing.T) {
	t.Helper()
	r.process = crashtest.Start(t, r.role)
	r.process.Await(t, 1, serving)
}

// Everything goes wrong that the promise covers, one after the other, while people sign up and rename. At the end
// nothing is lost, doubled, altered, invented or reordered.
func TestCampaign(t *testing.T) {
	if *campaignEvents == 0 {
		return
	}
	c := newCampaign(t)
	c.say("seed %d", *campaignSeed)
	deadline := c.began.Add(time.Duration(*campaignMinutes) * time.Minute)
	for round := 0; round == 0 || c.events() < *campaignEvents && time.Now().Before(deadline); round++ {
		c.playRound(t, round)
	}
	c.sendHome(t)
	c.say("everybody is home; now everything is looked at")
	c.requireWhole(t, max(2, 1+c.done["commits of notification lost"]))
	c.requireKept(t)
	c.report(t)
}

func newCampaign(t *testing.T) *campaign {
	t.Helper()
	began := time.Now()
	c := &campaign{
		nodes: startThree(t), services: map[string][]*replica{}, done: map[string]int{}, began: began,
		random: rand.New(rand.NewPCG(*campaignSeed, 0)),
		clusters: map[string]*cluster{
			customerService:     newCluster(t, migrations.ForCustomer()...),
			notificationService: newCluster(t, migrations.ForNotification()...),
		},
	}
	first := []string{c.nodes[0].addr()}
	c.stack = newStackOn(t, first, c.clusters[customerService].pool,
		append(slices.Clone(campaignSettings), "KAFKA_BROKERS="+addressesOf(c.nodes))...)
	c.notificationDB = c.clusters[notificationService].pool
	c.notificationEnv = append(c.notificationEnv, "DATABASE_URL="+c.clusters[notificationService].address.dsn())
	dropTopics(t, first, contract.TopicUsers, contract.TopicMails)
	admin := kafkatest.Admin(t, first)
	placeTopic(t, admin, contract.TopicUsers, 2, 3)
	placeTopic(t, admin, contract.TopicMails, 1, 2, 3)
	for _, cluster := range c.clusters { // each standby copies it
		execute(t, cluster.pool, `alter system set wal_keep_size = '128MB'`)
		execute(t, cluster.pool, `select pg_reload_conf()`)
	}
	for _, service := range []string{customerService, notificationService} {
		for n := range replicas {
			r := &replica{name: fmt.Sprintf("%s/%d", service, n+1), api: testkit.ReservePort(t)}
			r.role = role{Service: service, Environ: append(slices.Clone(c.environ(service)),
				"HTTP_ADDR="+r.api, "ADMIN_ADDR="+testkit.ReservePort(t))}
			r.start(t)
			c.services[service] = append(c.services[service], r)
		}
	}
	return c
}

// playRound plays each fault once, in any order. Commits and records are lost in some rounds only, each behind the heal
// of the one before: what the database and the broker lose together is gone.
func (c *campaign) playRound(t *testing.T, round int) {
	t.Helper()
	faults := c.faults()
	if round%lossEvery == 0 {
		faults = append(faults, c.losses()...)
	}
	c.random.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
	for _, f := range faults {
		c.requireReplicas(t)
		if waiting, err := c.readBacklog(t.Context()); err != nil || waiting.all() > maxWaiting {
			c.sendHome(t)
		}
		c.populate(t)
		began := time.Now()
		if !f.cause(t) {
			c.say("left out: %s", f.name)
			continue
		}
		c.done[f.name]++
		c.await(t, 20)
		if f.loses {
			c.sendHome(t)
		}
		c.say("%-47s %s", f.name, time.Since(began).Round(100*time.Millisecond))
	}
}

// requireReplicas fails when a process has ended that the campaign did not kill.
func (c *campaign) requireReplicas(t *testing.T) {
	t.Helper()
	for _, replicas := range c.services {
		for _, r := range replicas {
			select {
			case <-r.process.Done():
				require.FailNow(t, r.name+" has ended: "+fmt.Sprint(r.process.Wait(t)))
			default:
			}
		}
	}
}

// populate sends people to both replicas of Customer, unless they are there.
func (c *campaign) populate(t *testing.T) {
	t.Helper()
	if len(c.crowds) > 0 {
		return
	}
	c.crowded++
	for _, r := range c.services[customerService] {
		most := min(2+*campaignEvents/10_000, 8) // people at one replica
		crowd := &crowd{
			person: &client{base: "http://" + r.api, http: &http.Client{
				Timeout: 5 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: most},
			}},
			habits: habits{people: most, renames: 8, pause: 20 * time.Millisecond, most: math.MaxInt64},
		}
		crowd.come(t, fmt.Sprintf("%s-%d", r.name, c.crowded))
		c.crowds = append(c.crowds, crowd)
	}
	c.await(t, 20)
}

// await waits until each replica of Customer has taken so many more requests.
func (c *campaign) await(t *testing.T, more int64) {
	t.Helper()
	for _, crowd := range c.crowds {
		crowd.await(t, more)
	}
}

// backlog counts the events behind the load: in the outbox, on the log for each group, and mails to send.
type backlog struct {
	outbox, mails int64
	groups        map[string]int64
}

func (b *backlog) all() (waiting int64) {
	waiting = b.outbox + b.mails
	for _, records := range b.groups {
		waiting += records
	}
	return waiting
}

func (b *backlog) String() string {
	return fmt.Sprintf("%d in the outbox, %d mails, records: %v", b.outbox, b.mails, b.groups)
}

func (c *campaign) readBacklog(ctx context.Context) (b backlog, err error) {
	outbox, err := relay.ReadStatus(ctx, c.customerDB)
	b.outbox, b.groups = outbox.Waiting, map[string]int64{}
	for _, topic := range []string{contract.TopicUsers, contract.TopicMails} {
		if err == nil {
			var behind map[string]int64
			behind, err = kafka.GroupsBehind(ctx, kafka.Config{Brokers: c.brokers}, topic)
			maps.Copy(b.groups, behind)
		}
	}
	if err == nil {
		err = c.notificationDB.QueryRow(ctx, unsentMails).Scan(&b.mails)
	}
	return b, err
}

// settle waits for as long as the backlog becomes smaller: a log that lost records is read again as a whole.
func (c *campaign) settle(t *testing.T) {
	t.Helper()
	var now backlog
	for least := int64(math.MaxInt64); least > 0; {
		testkit.Until(t, func() (isSmaller bool) {
			read, err := c.readBacklog(t.Context())
			if err == nil {
				now, isSmaller = read, read.all() < least
			}
			if isSmaller {
				least = read.all()
			}
			return isSmaller
		}, "not handled: %s", &now)
	}
}

const unsentMails = `select count(*) from lease where state not in ('done', 'uncertain')`

// sendHome sends all people home and waits until their events are handled, and the log is healed.
func (c *campaign) sendHome(t *testing.T) {
	t.Helper()
	for _, crowd := range c.crowds {
		crowd.goHome()
		c.accepted = append(c.accepted, crowd.accepted...)
		crowd.person.http.CloseIdleConnections()
	}
	c.crowds = nil
	c.settle(t)
	c.awaitRecorded(t)
	c.awaitHealed(t)
}

// events is how many there are: one for each request that was taken, and one for each mail.
func (c *campaign) events() (n int) {
	for _, is := range c.accepted {
		n++
		if is.version == 1 {
			n++
		}
	}
	for _, crowd := range c.crowds {
		n += int(crowd.taken.Load())
	}
	return n
}

func (c *campaign) say(format string, args ...any) {
	fmt.Printf("%8s %9d events  %s\n", time.Since(c.began).Round(time.Second), c.events(), fmt.Sprintf(format, args...))
}

// requireKept looks for each event that a person heard of. Only what was accepted while commits were lost may be
// missing.
func (c *campaign) requireKept(t *testing.T) {
	t.Helper()
	gone := c.stack.lost(t, contract.TopicUsers, c.accepted)
	unexcused := slices.DeleteFunc(slices.Clone(gone), func(a acceptance) bool {
		return slices.ContainsFunc(c.lost, func(s span) bool { return !a.at.Before(s.from) && !a.at.After(s.to) })
	})
	require.Empty(t, unexcused[:min(len(unexcused), 10)], "%d changes that people heard of are lost", len(unexcused))
	c.say("%d changes of %d people were accepted; %d went with a database before they were published; all others have "+
		"come through", len(c.accepted), count(t, c.customerDB, `select count(*) from profile`), len(gone))
}

// report prints what the campaign is run for.
func (c *campaign) report(t *testing.T) {
	t.Helper()
	faults := 0
	names := make([]string, 0, len(c.done))
	for name, times := range c.done {
		faults += times
		names = append(names, fmt.Sprintf("  %4d  %s\n", times, name))
	}
	slices.Sort(names)
	for _, line := range names {
		fmt.Print(line)
	}
	healed := count(t, c.customerDB, `select count(*) from outbox_lost`) +
		count(t, c.notificationDB, `select count(*) from outbox_lost`)
	c.say("%d faults; %d events that a database lost came back from the log; %d mails may have been sent and wait for a "+
		"person; nothing is lost, doubled, altered, invented or reordered", faults, healed, len(c.uncertain(t)))
}

// kill ends a process as a crash does. Another one takes its place.
func (r *replica) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, r.process.Signal(syscall.SIGKILL))
	<-r.process.Done()
	r.start(t)
}

// freeze stops a process until others have taken its lead and its partitions, and lets it go on.
func (r *replica) freeze(t *testing.T) {
	t.Helper()
	require.NoError(t, r.process.Signal(syscall.SIGSTOP))
	rest(t, frozenFor)
	require.NoError(t, r.process.Signal(syscall.SIGCONT))
}
