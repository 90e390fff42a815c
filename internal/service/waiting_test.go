package service_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/circuit"
)

func TestAdmin_ReadinessNamesAnOutageOnce(t *testing.T) {
	t.Parallel()
	admin := service.NewAdmin(service.AdminConfig{Log: quiet})
	admin.Check("database", func(context.Context) error {
		return &circuit.DownError{Name: "database", Err: errors.New("refused")}
	})
	admin.Check("relay", func(context.Context) error {
		return fmt.Errorf("read status: %w", &circuit.DownError{Name: "database", Err: errors.New("refused")})
	})
	code, report := readyz(t, admin)
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, service.StatusNotReady, report.Status)
	require.Equal(t, service.StatusFailing, report.Checks[0].Status)
	require.Equal(t, service.StatusWaiting, report.Checks[1].Status)
	require.Equal(t, "for database", report.Checks[1].Reason)
}
