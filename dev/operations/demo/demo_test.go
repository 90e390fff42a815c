package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"go.uber.org/goleak"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/ops/admin/client"
	"example.com/twinbox/internal/verify"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type system struct {
	mu       sync.Mutex
	shown    string
	verdict  string
	verified int
	acts     map[int]int
	act      func(n, attempt int) (id, problem string)
	arrived  func(id string) bool
	out      bytes.Buffer
	cfg      Config
}

const (
	quiet = `{"kind":"outbox","name":"customer","waiting":0,"state":"well"},
		{"kind":"relay","name":"customer","waiting":0,"for_operator":0,"state":"well"},
		{"kind":"inbox","name":"c","waiting":0,"for_operator":1,"state":"watch"},
		{"kind":"mail","name":"m","waiting":0,"for_operator":2,"state":"watch"}`
	stations = `{"service":"customer","status":"ready","causes":[],"stations":[%s]}`
	verdict  = `{"customer":{"at":"2026-11-21T10:00:00Z","checks":[],"produced":[{"topic":"users","published":12},` +
		`{"topic":"dlq.users","published":3}],"consumed":[{"consumer":"c","handled":14,"again":2}],` +
		`"findings":[%s],"unverifiable":[%s]}}`
)

func newSystem(t *testing.T) *system {
	t.Helper()
	s := &system{
		shown: quiet, verdict: fmt.Sprintf(verdict, "", ""), acts: map[int]int{},
		act:     func(n, _ int) (string, string) { return fmt.Sprint("id-", n), "" },
		arrived: func(string) bool { return true },
	}
	mux := http.NewServeMux()
	handle := func(pattern string, answer func(r *http.Request) (status int, body string)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			s.mu.Lock()
			defer s.mu.Unlock()
			status, body := answer(r)
			w.Header().Set("Twinbox-Service", "customer")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		})
	}
	handle(adminapi.StationsPath, func(*http.Request) (int, string) {
		return http.StatusOK, fmt.Sprintf(stations, s.shown)
	})
	handle("/admin/v1/outbox/republish", func(*http.Request) (int, string) {
		return http.StatusOK, `{"result":{"dry_run":false,"count":12}}` + "\n"
	})
	handle("POST /v1/signups", func(r *http.Request) (int, string) {
		key := strings.Trim(r.Header.Get("Idempotency-Key"), `"`)
		n, err := strconv.Atoi(key[strings.LastIndex(key, "-")+1:])
		if err != nil {
			return http.StatusBadRequest, "{}"
		}
		s.acts[n]++
		id, code := s.act(n, s.acts[n])
		if code != "" {
			return http.StatusServiceUnavailable, fmt.Sprintf(`{"code":%q}`, code)
		}
		return http.StatusCreated, fmt.Sprintf(`{"user_id":%q}`, id)
	})
	handle("GET /v1/customers/{id}", func(r *http.Request) (int, string) {
		if s.arrived(r.PathValue("id")) {
			return http.StatusOK, "{}"
		}
		return http.StatusNotFound, "{}"
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	service, err := client.New("customer", server.URL, "token")
	require.NoError(t, err)
	s.cfg = Config{
		Services: []*client.Service{service}, API: server.Listener.Addr().String(), Rate: 50, For: 200 * time.Millisecond,
		Settle: 20 * time.Second, Out: &s.out,
		Verify: func(context.Context, time.Time) (report verify.Report, err error) {
			s.verified++
			err = json.Unmarshal([]byte(s.verdict), &report)
			return report, err
		},
	}
	return s
}

func TestADemonstrationEndsWithTheVerdict(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.act = func(n, attempt int) (string, string) {
		if n == 0 && attempt < 3 {
			return "", "not_now"
		}
		return fmt.Sprint("id-", n), ""
	}
	s.cfg.Faults = []Fault{
		{Name: "thunder", What: "it thunders", Cause: func(context.Context, *Run) (string, error) { return "over", nil }},
		Duplicates(),
	}
	require.NoError(t, Play(t.Context(), s.cfg))
	out := s.out.String()
	require.Regexp(t, `s  thunder            it thunders\n`, out)
	require.Regexp(t, `(?s) over\n.*duplicates .*12\s+events were published again`, out)
	require.Regexp(t, `\d+ signed up, nothing waits, 2 mails uncertain, 1 dead letters\n`, out)
	require.Contains(t, out, "2 mails are uncertain")
	require.Contains(t, out, "nothing lost, doubled, altered, invented, reordered: 12 events\n")
	require.Regexp(t, `all \d+ signed up have arrived; consumers handled 12 records, each once, and 2 more`, out)
	require.GreaterOrEqual(t, s.acts[0], 3, "it was repeated until it was taken")
}

func TestADemonstrationThatFindsSomething(t *testing.T) {
	t.Parallel()
	const finding = `{"kind":"lost","rule":"V1","subject":"users","event_id":"e-1","key":"k-1","detail":"gone"}`
	const reason = `{"subject":"users","reason":"the topic does not hold it any more","events":18}`
	for name, row := range map[string]struct {
		change     func(*system)
		code       int
		says, told string
	}{
		"a finding": {
			func(s *system) { s.verdict = fmt.Sprintf(verdict, finding, "") }, 1, "verify found 1 lost", "lost  ",
		},
		"something that did not arrive": {
			func(s *system) { s.arrived = func(id string) bool { return id != "id-0" } }, 1,
			"1 of what was taken has not arrived", "MISSING            id-0",
		},
		"something that is not known": {
			func(s *system) { s.verdict = fmt.Sprintf(verdict, "", reason) }, 5, "18 events could not be verified",
			"NOT VERIFIABLE     18 of users",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSystem(t)
			row.change(s)
			err := Play(t.Context(), s.cfg)
			require.ErrorContains(t, err, row.says)
			code := 1
			if partial := unverifiableError(0); errors.As(err, &partial) {
				code = partial.ExitCode()
			}
			require.Equal(t, row.code, code)
			require.Contains(t, s.out.String(), row.told)
			require.NotContains(t, s.out.String(), "nothing lost")
		})
	}
}

func TestADemonstrationThatDoesNotEndWell(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(*system)
		says   string
	}{
		"no success": {
			func(s *system) {
				s.cfg.Settle = 10 * time.Millisecond
				s.act = func(int, int) (string, string) { return "", "unavailable" }
			}, "no success for 10ms: sign up: 503 unavailable",
		},
		"a fault that cannot be caused": {
			func(s *system) {
				s.cfg.Faults = []Fault{{Name: "rain", Cause: func(context.Context, *Run) (string, error) {
					return "", errors.New("no clouds")
				}}}
			}, "rain: no clouds",
		},
		"another answer": {
			func(s *system) {
				s.act = func(n, attempt int) (string, string) { return fmt.Sprint(n, attempt), "" }
				s.cfg.Faults = []Fault{{Name: "patience", Cause: somethingIsMade}, Duplicates()}
			}, "duplicates: a request that was repeated had another answer",
		},
		"something that waits": {
			func(s *system) {
				s.cfg.Settle = 100 * time.Millisecond
				s.shown = strings.Replace(quiet, `"waiting":0`, `"waiting":3`, 1)
			}, "there is still something that waits: 3 to be published",
		},
		"something that is not known": {
			func(s *system) {
				s.cfg.Settle = 100 * time.Millisecond
				s.shown = strings.Replace(quiet, `"state":"well"`, `"state":"unknown"`, 1)
			}, "there is still something that waits: not all is known",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSystem(t)
			row.change(s)
			require.ErrorContains(t, Play(t.Context(), s.cfg), row.says)
			require.Zero(t, s.verified, "there is nothing to judge yet")
		})
	}
}

func somethingIsMade(ctx context.Context, run *Run) (string, error) {
	for len(run.signedUp()) == 0 {
		if failure.Sleep(ctx, time.Millisecond) != nil {
			return "", ctx.Err()
		}
	}
	return "", nil
}

func TestADemonstrationThatIsBrokenOffIsJudged(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	ctx, stop := context.WithCancel(t.Context())
	s.cfg.For = time.Hour
	s.act = func(n, _ int) (string, string) {
		if n == 3 {
			stop()
		}
		return fmt.Sprint("id-", n), ""
	}
	s.cfg.Faults = []Fault{{Name: "late", Cause: func(context.Context, *Run) (string, error) {
		return "", errors.New("it was caused")
	}}}
	require.NoError(t, Play(ctx, s.cfg))
	require.Contains(t, s.out.String(), "nothing lost")
}
