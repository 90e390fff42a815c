package services_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/services"
)

func TestLoad(t *testing.T) {
	t.Parallel()
	customer := services.All()[0]
	_, err := customer.Load(nil)
	require.ErrorContains(t, err, "DATABASE_URL: is required")
	instance, err := customer.Load([]string{
		"DATABASE_URL=postgres://db/x", "KAFKA_BROKERS=k:9092", "VERIFICATION_SECRET=" + strings.Repeat("k", 32),
		"HTTP_ADDR=127.0.0.1:9",
	})
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:9", instance.Value("HTTP_ADDR"))
	require.False(t, instance.Reads("SMTP_ADDR"))
	require.Empty(t, instance.Value("SMTP_ADDR"))
	require.NotEmpty(t, instance.Topics())
}
