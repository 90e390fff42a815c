package config_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/config"
)

type bounds struct {
	Lease  time.Duration `env:"OUTBOX_LEASE" envDefault:"10s" min:"1s" max:"5m" doc:"d"`
	Poll   time.Duration `env:"OUTBOX_POLL" envDefault:"1s" doc:"d"`
	Short  time.Duration `env:"OUTBOX_SHORT" envDefault:"1s" max:"9s" doc:"d"`
	Pool   int32         `env:"DATABASE_POOL_SIZE" envDefault:"10" min:"1" max:"1000" doc:"d"`
	Small  int32         `env:"DATABASE_SMALL" envDefault:"10" doc:"d"`
	Signed int           `env:"DATABASE_SIGNED" envDefault:"0" min:"-5" doc:"d"`
	Bytes  int64         `env:"OUTBOX_MAX_BYTES" envDefault:"900000" doc:"d"`
	Key    config.Secret `env:"KEY" min:"32" max:"64" doc:"d"`
	Text   string        `env:"TEXT" doc:"d"`
	Addr   string        `env:"SMTP_ADDR" format:"address" doc:"d"`
	Name   string        `env:"ENVIRONMENT" format:"name" doc:"d"`
	URL    config.Secret `env:"DATABASE_URL" format:"postgres" doc:"d"`
}

func TestLoad_TheLastValueBeforeALimit(t *testing.T) {
	t.Parallel()
	for variable, c := range map[string]struct{ taken, refused []string }{
		"OUTBOX_LEASE":       {[]string{"1s", "5m"}, []string{"999999999ns", "5m0.000000001s"}},
		"OUTBOX_POLL":        {[]string{"1ns", "87600h"}, []string{"0s"}},
		"OUTBOX_SHORT":       {[]string{"1ns", "9s"}, []string{"0s", "9001ms"}},
		"DATABASE_POOL_SIZE": {[]string{"1", "1000"}, []string{"0", "1001"}},
		"DATABASE_SMALL":     {[]string{"0", "2147483647"}, []string{"-1", "2147483648"}},
		"DATABASE_SIGNED":    {[]string{"-5"}, []string{"-6"}},
		"OUTBOX_MAX_BYTES":   {[]string{"0", "9223372036854775807"}, []string{"-1", "9223372036854775808"}},
		"KEY":                {[]string{strings.Repeat("k", 32), strings.Repeat("k", 64)}, []string{strings.Repeat("k", 31)}},
		"TEXT":               {[]string{"x", `"`, "'"}, []string{`""`}},
		"SMTP_ADDR":          {[]string{"a:1", "a:65535"}, []string{"a:0", "a:65536"}},
		"ENVIRONMENT":        {[]string{"a", strings.Repeat("a", 63)}, []string{strings.Repeat("a", 64)}},
		"DATABASE_URL": {
			[]string{"postgres://db/x", "postgresql://db/x", "postgres:///x?host=/run"},
			[]string{"postgres:///x", "postgre://db/x"},
		},
	} {
		for _, value := range c.taken {
			require.Empty(t, load(t, []string{variable + "=" + value}, new(bounds)), "%s=%.50s", variable, value)
		}
		for _, value := range c.refused {
			require.Len(t, load(t, []string{variable + "=" + value}, new(bounds)), 1, "%s=%.50s", variable, value)
		}
	}
	var cfg bounds
	require.NoError(t, config.Load([]string{"DATABASE_SMALL=2147483647", "OUTBOX_MAX_BYTES=9223372036854775807"}, &cfg))
	require.EqualValues(t, math.MaxInt32, cfg.Small)
	require.EqualValues(t, math.MaxInt64, cfg.Bytes)
}
