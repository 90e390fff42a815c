package service_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/service"
)

func TestNewLogger_Levels(t *testing.T) {
	t.Parallel()
	levels := []string{"debug", "info", "warn", "error"}
	for i, level := range levels {
		var out bytes.Buffer
		log := service.NewLogger(&out, level, "text")
		log.Debug("debug")
		log.Info("info")
		log.Warn("warn")
		log.Error("error")
		for j, message := range levels {
			require.Equal(t, j >= i, strings.Contains(out.String(), "msg="+message), "%s at level %s", message, level)
		}
	}
}

func TestNewLogger_TimesAreUTC(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 4, 4, 5, 0, time.FixedZone("", 3600))
	var out bytes.Buffer
	log := service.NewLogger(&out, "info", "json")
	record := slog.NewRecord(at, slog.LevelInfo, "m", 0)
	record.Add("due", at, slog.Group("of", "took", time.Minute, "until", at))
	require.NoError(t, log.Handler().Handle(t.Context(), record))
	require.JSONEq(t, `{"time":"2026-01-02T03:04:05Z","level":"INFO","msg":"m","due":"2026-01-02T04:04:05+01:00",
		"of":{"took":"1m","until":"2026-01-02T04:04:05+01:00"}}`, out.String())
}

func logged(t *testing.T, out *bytes.Buffer) (records []map[string]any) {
	t.Helper()
	for line := range strings.Lines(out.String()) {
		var record map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &record))
		records = append(records, record)
	}
	return records
}

func TestGroup_SaysWhyItStopped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		run   func(ctx context.Context) error
		stack bool
	}{
		"failed":   {func(context.Context) error { return errors.New("boom") }, false},
		"panicked": {func(context.Context) error { panic("boom") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				log := service.NewLogger(&out, "info", "json")
				group := service.NewGroup(t.Context(), log, time.Minute)
				group.Go("relay", c.run)
				require.ErrorContains(t, group.Wait(), "boom")
				records := logged(t, &out)
				require.Len(t, records, 3)
				require.Equal(t, "task failed", records[0]["msg"])
				require.Equal(t, "ERROR", records[0]["level"])
				require.Equal(t, "relay", records[0]["task"])
				require.Contains(t, records[0]["error"], "boom")
				stack, _ := records[0]["stack"].(string)
				require.Equal(t, c.stack, strings.Contains(stack, "logs_test.go"))
				require.Equal(t, "stopping", records[1]["msg"])
				require.Equal(t, "a task failed", records[1]["reason"])
			})
		})
	}
}

func TestNewLogger_ALineIsBounded(t *testing.T) {
	t.Parallel()
	const long = 1 << 20
	for _, format := range []string{"json", "text"} {
		var out bytes.Buffer
		log := service.NewLogger(&out, "info", format)
		log.Error("broken", "error", errors.New("read: "+strings.Repeat("x", long)), "detail", strings.Repeat("y", long),
			slog.Group("inner", "error", errors.Join(errors.New("a"), errors.New(strings.Repeat("z", long)))))
		require.Less(t, out.Len(), 32<<10, format)
		require.Contains(t, out.String(), "read: xxx")
		require.Contains(t, out.String(), "bytes more)")
	}
}
