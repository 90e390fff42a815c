package e2e

import (
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

var recordings = flag.String("e2e.recordings", "", "folder for what /metrics said; none: not recorded")

// recording is read by the tests in deploy/observability, a separate module.
type recording struct {
	Name string `json:"name"`
	// GoesOn: the last two scrapes show a state that lasts, so a rate between them continues.
	GoesOn  bool     `json:"goes_on"`
	Scrapes []scrape `json:"scrapes"`
}

// scrape has /metrics by service, empty where it does not answer.
type scrape struct {
	At      time.Time         `json:"at"`
	Targets map[string]string `json:"targets"`
}

type scene struct {
	*stack
	broker   dependency
	db       *pgxpool.Pool // Customer's; nil: one on the shared server
	settings []string
	watched  map[string]*watched
	recorded recording
}

func newScene(t *testing.T, name string) *scene {
	t.Helper()
	if *recordings == "" {
		t.Skip("make test-observability runs it")
	}
	return &scene{watched: map[string]*watched{}, recorded: recording{Name: name}}
}

// begin starts the services, both if none is named, and records them once they are ready.
func (s *scene) begin(t *testing.T, services ...string) {
	t.Helper()
	addr, broker := durableBroker(t)
	s.broker = broker
	if s.db == nil {
		s.db = pgtest.New(t, migrations.ForCustomer()...)
	}
	s.stack = newStackOn(t, []string{addr}, s.db, "INBOX_RETRY_MIN=100ms", "KAFKA_SESSION_TIMEOUT=6s")
	for _, setting := range s.settings {
		s.set(setting)
	}
	if len(services) == 0 {
		services = []string{customerService, notificationService}
	}
	for _, name := range services {
		s.watched[name] = s.watch(t, name)
	}
	for name, w := range s.watched {
		testkit.Until(t, func() bool { return w.readyz(t).code == http.StatusOK }, name)
		s.await(t, name, "outbox_relay_has_leader", "", positive)
	}
	s.record(t)
}

// set adds a setting that neither service has to both.
func (s *scene) set(setting string) {
	name, _, _ := strings.Cut(setting, "=")
	found := false
	for _, environ := range [][]string{s.customerEnv, s.notificationEnv} {
		for i, entry := range environ {
			if strings.HasPrefix(entry, name+"=") {
				environ[i], found = setting, true
			}
		}
	}
	if !found {
		s.customerEnv, s.notificationEnv = append(s.customerEnv, setting), append(s.notificationEnv, setting)
	}
}

func (s *scene) record(t *testing.T) {
	t.Helper()
	look := scrape{At: time.Now(), Targets: map[string]string{}}
	for name, w := range s.watched {
		look.Targets[name] = w.metrics(t)
	}
	s.recorded.Scrapes = append(s.recorded.Scrapes, look)
}

// recordState takes two scrapes, further apart than the maximal age of an answer of /metrics.
func (s *scene) recordState(t *testing.T) {
	t.Helper()
	s.recorded.GoesOn = true
	s.record(t)
	rest(t, 1200*time.Millisecond)
	s.record(t)
}

func (s *scene) keep(t *testing.T) {
	t.Helper()
	content, err := json.MarshalIndent(s.recorded, "", " ")
	require.NoError(t, err)
	name := strings.ReplaceAll(s.recorded.Name, " ", "-") + ".json"
	require.NoError(t, os.WriteFile(filepath.Join(*recordings, name), content, 0o600))
}

func (s *scene) await(t *testing.T, service, name, label string, holds func(float64) bool) {
	t.Helper()
	var last float64
	testkit.Until(t, func() bool {
		value, found := sumOf(s.watched[service].metrics(t), name, label)
		last = value
		return found && holds(value)
	}, "%s{%s} of %s is %v", name, label, service, &last)
}

func zero(v float64) bool     { return v == 0 }
func positive(v float64) bool { return v > 0 }
