package local_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/twinbox/dev/local"
	"example.com/twinbox/dev/local/stacktest"
	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/test/testkit"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		os.Exit(runChild(dir))
	}
	// The Kafka client's metrics library keeps this goroutine.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"))
}

type screen struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func folder(t *testing.T) string {
	t.Helper()
	return filepath.Join(testkit.Folder(t), "state")
}

// shop runs next to the project's services, which may be none.
var shop = []eventing.Described{stacktest.Service("shop").Describe()}

type running struct {
	at   local.Addresses
	out  *screen
	err  *screen
	stop func() error
}

func start(t *testing.T, cfg local.Config) *running {
	t.Helper()
	r := &running{out: &screen{}, err: &screen{}}
	ready := make(chan local.Addresses, 1)
	cfg.Out, cfg.Err, cfg.Ready = r.out, r.err, func(at local.Addresses) { ready <- at }
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- local.Run(ctx, cfg) }()
	r.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { require.NoError(t, r.stop()) })
	select {
	case r.at = <-ready:
	case err := <-ended:
		ended <- err
		require.NoError(t, err)
	}
	return r
}

func TestSettings(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		setting, want string
	}{
		"unknown":       {"OUTBOX_POL=1s", "no service reads it"},
		"no value":      {"OUTBOX_POLL", "NAME=VALUE"},
		"an address":    {"DATABASE_URL=postgres://elsewhere/db", "this program sets it"},
		"a bad value":   {"OUTBOX_POLL=often", "OUTBOX_POLL"},
		"a cross check": {"OUTBOX_LEASE=5s", "OUTBOX_LEASE"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t)
			err := local.Run(t.Context(), local.Config{Dir: dir, Extra: shop, Settings: []string{test.setting}})
			require.ErrorContains(t, err, test.want)
			var coded interface{ ExitCode() int }
			require.ErrorAs(t, err, &coded)
			require.Equal(t, 2, coded.ExitCode())
			require.NoDirExists(t, dir)
		})
	}
}

func TestStartThatIsCancelled(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{0, 10 * time.Millisecond, 200 * time.Millisecond, 700 * time.Millisecond} {
		t.Run(after.String(), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			err := local.Run(ctx, local.Config{Dir: folder(t), Extra: shop})
			if err != nil {
				require.ErrorIs(t, err, context.DeadlineExceeded)
			}
		})
	}
}

func TestStartThatFails(t *testing.T) {
	t.Parallel()
	t.Run("a file in place of the folder", func(t *testing.T) {
		t.Parallel()
		file := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		require.Error(t, local.Run(t.Context(), local.Config{Dir: file}))
	})
	t.Run("a configuration problem", func(t *testing.T) {
		t.Parallel()
		dir := folder(t)
		err := local.Run(t.Context(), local.Config{Dir: dir, Extra: shop, KafkaBrokers: "no port"})
		_, found := errors.AsType[*config.Error](err)
		require.True(t, found, "%v", err)
		require.NoDirExists(t, dir, "nothing was started")
	})
}

func TestPrograms(t *testing.T) {
	t.Parallel()
	var happened []string
	var admin string
	note := func(what string) {
		conn, err := net.Dial("tcp", admin)
		if err == nil {
			err = conn.Close()
		}
		happened = append(happened, fmt.Sprint(what, ", services listen: ", err == nil))
	}
	dir := folder(t)
	r := start(t, local.Config{Dir: dir, Extra: shop, Programs: []local.Program{{
		Name: "page", Title: "Page", Note: "for one reader",
		Run: func(ctx context.Context, at local.Addresses, _ *slog.Logger, ready func(string)) error {
			admin = at.Services["shop"].Admin
			note("running in " + at.Dir)
			ready("http://127.0.0.1:1/page")
			<-ctx.Done()
			note("stopped")
			return nil
		},
	}}})
	require.Equal(t, map[string]string{"page": "http://127.0.0.1:1/page"}, r.at.Programs)
	require.Regexp(t, `Page +http://127.0.0.1:1/page\n +for one reader\n`, r.out.String())
	require.NoError(t, r.stop())
	require.Equal(t, []string{"running in " + dir + ", services listen: true", "stopped, services listen: true"}, happened)
}

func TestAProgramReachesAServiceThatIsNotReady(t *testing.T) {
	t.Parallel()
	decided := make(chan struct{})
	undecided := stacktest.Service("waiting").Describe()
	load := undecided.Load
	undecided.Load = func(environ []string) (*eventing.Instance, error) {
		instance, err := load(environ)
		instance.Run = func(ctx context.Context, host service.Host) error { return serveUndecided(ctx, host, decided) }
		return instance, err
	}
	r := start(t, local.Config{Dir: folder(t), Extra: []eventing.Described{undecided}, Programs: []local.Program{{
		Name: "operator",
		Run: func(ctx context.Context, at local.Addresses, _ *slog.Logger, ready func(string)) error {
			ready("http://" + at.Services["waiting"].Admin)
			close(decided)
			<-ctx.Done()
			return nil
		},
	}}})
	require.Contains(t, r.at.Names, "waiting")
}

func serveUndecided(ctx context.Context, host service.Host, decided <-chan struct{}) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	host.Announce(service.Listeners{Admin: listener.Addr().String()})
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		select {
		case <-decided:
			_, _ = w.Write([]byte(`{"status":"ready"}`))
		default:
			http.Error(w, `{"status":"not_ready"}`, http.StatusServiceUnavailable)
		}
	})}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	_ = server.Serve(listener)
	return nil
}

func TestAProgramThatDoesNotStart(t *testing.T) {
	t.Parallel()
	broken := errors.New("no paper")
	err := local.Run(t.Context(), local.Config{Dir: folder(t), Extra: shop, Programs: []local.Program{{
		Name: "page",
		Run:  func(context.Context, local.Addresses, *slog.Logger, func(string)) error { return broken },
	}}})
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "page")
}
