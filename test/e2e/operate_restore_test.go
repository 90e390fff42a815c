package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

// timeline is that of the last checkpoint.
func (c *cluster) timeline(t *testing.T) (id int) {
	t.Helper()
	conn := c.connect(t)
	_, err := conn.Exec(t.Context(), `checkpoint`)
	require.NoError(t, err)
	require.NoError(t, conn.QueryRow(t.Context(), `select timeline_id from pg_control_checkpoint()`).Scan(&id))
	return id
}

const drillToken = "0123456789abcdef0123456789abcdef"

// operated gives a service of the stack an admin listener at a known address and an operator's token.
func operated(t *testing.T, environ []string) (_ []string, admin string) {
	t.Helper()
	admin = testkit.ReservePort(t)
	return append(environ, "ADMIN_ADDR="+admin, "ADMIN_TOKEN="+drillToken), admin
}

// probe asks an admin listener; 0: it does not answer.
func probe(t *testing.T, admin, path string) (status int, report string) {
	t.Helper()
	answer, err := (&client{base: "http://" + admin, http: http.DefaultClient}).try(
		t.Context(), http.MethodGet, path, "", nil)
	if err != nil {
		return 0, err.Error()
	}
	return answer.Status, answer.raw
}

// begin starts a service that will not be ready by itself.
func (h *stack) begin(t *testing.T, name string) (ready chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended, ready := make(chan error, 1), make(chan struct{})
	host := service.Host{
		Log:   slog.New(slog.DiscardHandler),
		Ready: func(service.Listening) { close(ready) },
	}
	go func() { ended <- serve(ctx, name, h.environ(name), host) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return ready
}

// confirmRestore asks a service to go on, and returns the status, the last line and how many events it took back.
func confirmRestore(t *testing.T, admin string, dryRun bool) (status int, last string, events int64) {
	t.Helper()
	body := fmt.Sprintf(`{"by":"ada","reason":"the drill","dry_run":%t}`, dryRun)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		"http://"+admin+"/admin/v1/outbox/restore/confirm", strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+drillToken)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	said, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	last = lines[len(lines)-1]
	var line struct {
		Result struct {
			Count int64 `json:"count"`
		} `json:"result"`
	}
	require.NoError(t, json.Unmarshal([]byte(last), &line), last)
	return response.StatusCode, last, line.Result.Count
}

// versions are the highest of each key on the users' topic. It fails where one comes twice or is left out.
func (h *stack) versions(t *testing.T, records int) map[string]int {
	t.Helper()
	highest, ids := map[string]int{}, map[string]string{}
	for _, record := range kafkatest.ReadAll(t, h.brokers, contract.TopicUsers, records) {
		var id, version string
		for _, header := range record.Headers {
			switch string(header.Key) {
			case "ce_id":
				id = string(header.Value)
			case "ce_aggregateversion":
				version = string(header.Value)
			}
		}
		place := string(record.Key) + "/" + version
		if known, again := ids[place]; again {
			require.Equal(t, known, id, "two events of a key have one number: %s", place)
			continue
		}
		ids[place] = id
		highest[string(record.Key)]++
		require.Equal(t, fmt.Sprint(highest[string(record.Key)]), version, "a gap in %s", record.Key)
	}
	return highest
}

// The drill of docs/operations.md. A base backup is restored in place: the database forgets what was published after
// it. The service does not publish, does not take requests, says why, and goes on with everything after the operator
// has confirmed. Nothing of it is silent, and no consumer sees a version twice.
func TestARestoreInPlaceIsNoticed(t *testing.T) {
	for name, recovery := range map[string]bool{"on the same timeline": false, "on a new timeline": true} {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			c := newCluster(t)
			h := newStackOn(t, stackBrokers(t), c.database(t, migrations.ForCustomer()...))
			var admin string
			h.customerEnv, admin = operated(t, h.customerEnv)
			stop := h.start(t, customerService)
			h.start(t, notificationService)
			ada := h.person(t, "ada@example.org")
			h.known(t, ada, "Someone", 1)
			timeline := c.timeline(t)
			c.backup(t)
			h.rename(t, ada, "Ada", 1)
			bob := h.person(t, "bob@example.org")
			h.known(t, ada, "Ada", 2)
			h.known(t, bob, "Someone", 1)
			stop()
			h.customerDB.Reset()
			c.restore(t, recovery)
			require.Equal(t, recovery, c.timeline(t) > timeline)
			require.Equal(t, 1, count(t, h.customerDB, `select count(*) from users`), "bob is forgotten")

			ready := h.begin(t, customerService)
			var report string
			testkit.Until(t, func() bool {
				var status int
				status, report = probe(t, admin, "/readyz")
				return status == http.StatusServiceUnavailable && strings.Contains(report, contract.TopicUsers) &&
					strings.Contains(report, "restored") // the cause and the relay's check, each as of its own moment
			}, "it says why: %s", &report)
			status, _ := probe(t, admin, "/livez")
			require.Equal(t, http.StatusOK, status)
			_, err := h.client().try(t.Context(), http.MethodGet, "/v1/customers/"+ada, "", nil)
			require.Error(t, err, "nothing is written until it is confirmed")

			_, last, events := confirmRestore(t, admin, true)
			require.EqualValues(t, 2, events, last)
			require.Equal(t, 1, count(t, h.customerDB, `select count(*) from users`), "a dry run changes nothing")
			_, last, events = confirmRestore(t, admin, false)
			require.EqualValues(t, 2, events, last)
			<-ready
			h.known(t, ada, "Ada", 2)
			h.known(t, bob, "Someone", 1)
			require.Equal(t, 1, count(t, h.customerDB, `select count(*) from operator_action where verb = 'confirm_restore'`))

			h.rename(t, ada, "Ada Lovelace", 2)
			h.rename(t, bob, "Bob", 1)
			carol := h.person(t, "carol@example.org")
			h.known(t, ada, "Ada Lovelace", 3)
			h.known(t, bob, "Bob", 2)
			h.known(t, carol, "Someone", 1)
			require.Equal(t, map[string]int{ada: 3, bob: 2, carol: 1}, h.versions(t, 6))
			for _, db := range []*pgxpool.Pool{h.customerDB, h.notificationDB} {
				require.Zero(t, count(t, db, `select count(*) from dead_letter`))
			}
			testkit.Until(t, func() bool { return len(h.box.Messages()) >= 3 })
			require.Len(t, h.box.Messages(), 3, "one mail for each person")
			testkit.Until(t, func() bool {
				status, _ := probe(t, admin, "/readyz")
				return status == http.StatusOK
			})

			testkit.Until(t, func() bool { // a busy machine may let the group lose its members for a while
				status, last, _ = confirmRestore(t, admin, false)
				return status == http.StatusConflict && strings.Contains(last, "consuming")
			}, "nothing is confirmed while the service works: %s", &last)
		})
	}
}
