package service_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/service"
)

func nothingTold(error) bool { return false }

// limited runs f in a bubble, with a logger that is limited, and returns what was written, without times.
func limited(t *testing.T, level slog.Level, told func(error) bool, f func(*slog.Logger)) []string {
	t.Helper()
	var out bytes.Buffer
	synctest.Test(t, func(*testing.T) {
		handler := service.LimitLog(slog.NewTextHandler(&out, &slog.HandlerOptions{
			Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Value.Kind() == slog.KindTime {
					return slog.Attr{}
				}
				return a
			},
		}), told)
		f(slog.New(handler))
		handler.Flush()
	})
	return strings.Split(strings.TrimSpace(out.String()), "\n")
}

// An outage is a line at its start, one a minute with the number of those between, and one at its end.
func TestALineThatRepeatsIsSaidOnceAMinute(t *testing.T) {
	t.Parallel()
	lines := limited(t, slog.LevelInfo, nothingTold, func(log *slog.Logger) {
		log = log.With("service", "customer", "consumer", "a")
		log.Error("attempt failed", "event_id", "e0", "error", io.EOF)
		<-time.After(time.Second / 2)
		for n := range 150 {
			log.Error("attempt failed", "event_id", fmt.Sprint("e", n+1), "error", io.EOF)
			<-time.After(time.Second)
		}
		<-time.After(2 * time.Minute)
		log.Error("attempt failed", "event_id", "later", "error", io.EOF)
		<-time.After(2 * time.Minute)
	})
	const line = `level=ERROR msg="attempt failed" service=customer consumer=a event_id=%s error=EOF`
	require.Equal(t, []string{
		fmt.Sprintf(line, "e0"),
		fmt.Sprintf(line, "e60") + " repeated=60",
		fmt.Sprintf(line, "e120") + " repeated=60",
		fmt.Sprintf(line, "e150") + " repeated=30",
		`level=INFO msg="no longer repeated" service=customer consumer=a line="attempt failed" repeated=150`,
		fmt.Sprintf(line, "later"),
	}, lines, "what happened once has no end")
}

// Each cause has its first line; what tells single ones apart is no cause.
func TestEachCauseIsSaid(t *testing.T) {
	t.Parallel()
	lines := limited(t, slog.LevelInfo, nothingTold, func(log *slog.Logger) {
		for n := range 100 {
			for _, consumer := range []string{"a", "b"} {
				for _, err := range []error{io.EOF, syscall.ECONNREFUSED, fmt.Errorf("event %d: %w", n, io.EOF)} {
					log.With("consumer", consumer).Warn("attempt failed", "offset", n, "error", err)
				}
			}
			log.Info("partition created", "from", n)
			log.Info("event settled", "outcome", "duplicate", "event_id", n)
			log.Info("event settled", "outcome", "stale", "event_id", n)
		}
	})
	count := func(text string) (n int) {
		for _, line := range lines {
			if strings.Contains(line, text) {
				n++
			}
		}
		return n
	}
	require.Equal(t, 2*2*2, count("attempt failed"), "two consumers, two codes, a first and a last")
	require.Equal(t, 2, count("repeated=199"), "the wrapped error is the same cause")
	require.Equal(t, 2+2, count("repeated=99"), "the other code, and two outcomes")
	require.Equal(t, 100, count("partition created"), "what is not about one of many is not limited")
}

// What an outage has caused is told by the outage; at debug everything is there.
func TestToldAndRepeatedLinesAreDebug(t *testing.T) {
	t.Parallel()
	told := func(err error) bool { return err == io.EOF } //nolint:errorlint // the test's own
	story := func(log *slog.Logger) {
		for range 3 {
			log.Warn("told", "error", io.EOF)
			log.Warn("not told", "error", io.ErrClosedPipe)
		}
	}
	lines := limited(t, slog.LevelInfo, told, story)
	require.Len(t, lines, 2)
	require.NotContains(t, strings.Join(lines, "\n"), `msg=told`)
	lines = limited(t, slog.LevelDebug, told, story)
	require.Len(t, lines, 7)
	require.Equal(t, 5, strings.Count(strings.Join(lines, "\n"), "level=DEBUG"))
}

// Kinds beyond the bound share the one of their message, so no cause can fill the memory or the log.
func TestKindsAreBounded(t *testing.T) {
	t.Parallel()
	lines := limited(t, slog.LevelInfo, nothingTold, func(log *slog.Logger) {
		for n := range 10_000 {
			log.Warn("odd", "topic", fmt.Sprint("t", n))
		}
	})
	require.Len(t, lines, 502)
	require.Contains(t, lines[501], "repeated=9499")
}
