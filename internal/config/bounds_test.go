package config_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/config"
)

// bounds are settings with and without limits of their own.
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

// The last value on each side of a limit is taken, and the next one refused.
func TestLoad_TheLastValueBeforeALimit(t *testing.T) {
	t.Parallel()
	host := func(n int) string { return strings.Repeat("a.", n/2) + strings.Repeat("a", n%2) + ":25" }
	for variable, c := range map[string]struct{ taken, refused []string }{
		"OUTBOX_LEASE":       {[]string{"1s", "5m"}, []string{"999999999ns", "5m0.000000001s"}},
		"OUTBOX_POLL":        {[]string{"1ns", "87600h"}, []string{"0s", "87600h0m0.000000001s"}},
		"OUTBOX_SHORT":       {[]string{"1ns", "9s"}, []string{"0s", "9001ms"}},
		"DATABASE_POOL_SIZE": {[]string{"1", "1000"}, []string{"0", "1001"}},
		"DATABASE_SMALL":     {[]string{"0", "2147483647"}, []string{"-1", "2147483648"}},
		"DATABASE_SIGNED":    {[]string{"-5"}, []string{"-6"}},
		"OUTBOX_MAX_BYTES":   {[]string{"0", "9223372036854775807"}, []string{"-1", "9223372036854775808"}},
		"KEY":                {[]string{strings.Repeat("k", 32), strings.Repeat("k", 64)}, []string{strings.Repeat("k", 31)}},
		"TEXT":               {[]string{"x", `"`, "'", strings.Repeat("x", 4096)}, []string{`""`, strings.Repeat("x", 4097)}},
		"SMTP_ADDR":          {[]string{host(253), "a:1", "a:65535"}, []string{host(255), "a:0", "a:65536"}},
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

// A problem says what was given, and what would be taken, in this order.
func TestLoad_WhatAProblemSays(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("9", 31) + "é" + "9"
	for setting, want := range map[string]string{
		"OUTBOX_LEASE=999ms":                    `"999ms" is not within 1s and 5m`,
		"OUTBOX_POLL=0s":                        `"0s" is not within 1ns and 87600h`,
		"OUTBOX_SHORT=10s":                      `"10s" is not within 1ns and 9s`,
		"OUTBOX_SHORT=soon":                     `"soon" is no duration`,
		"DATABASE_POOL_SIZE=0":                  `"0" is not within 1 and 1000`,
		"DATABASE_SMALL=-1":                     `"-1" is not within 0 and 2147483647`,
		"DATABASE_POOL_SIZE=" + long:            `"` + strings.Repeat("9", 31) + `é" is no decimal number`,
		"KEY=k":                                 "1 bytes, at least 32",
		"KEY=" + strings.Repeat("k", 65):        "65 bytes, at most 64",
		"SMTP_ADDR=smtp://mail:25":              "has a scheme",
		"SMTP_ADDR=mail:0":                      "port 0 cannot be dialled",
		"SMTP_ADDR=:25":                         "no host",
		"SMTP_ADDR=mail":                        "not host:port",
		"DATABASE_URL=postgres://u:hunter2@%/x": "must be percent-encoded",
		"DATABASE_URL=mysql://u:hunter2@db/x":   "does not begin with postgres://",
		"DATABASE_URL=postgres://u:hunter2@db/": "names no database",
		"DATABASE_URL=postgres://u:hunter2@/x":  "names no host",
	} {
		var invalid *config.Error
		require.ErrorAs(t, config.Load([]string{setting}, new(bounds)), &invalid, setting)
		require.Len(t, invalid.Problems, 1, setting)
		require.Contains(t, invalid.Problems[0].Detail, want)
		require.True(t, utf8.ValidString(invalid.Problems[0].Detail), "what is cut is still text")
	}
}

// A secret in a file is one that can be found: the problem says that it is the file's, not the variable's.
func TestLoad_AProblemInAFile(t *testing.T) {
	t.Parallel()
	var invalid *config.Error
	path := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(path, []byte("short"), 0o600))
	require.ErrorAs(t, config.Load([]string{"KEY_FILE=" + path}, new(bounds)), &invalid)
	require.Equal(t, []config.Problem{
		{"KEY_FILE", config.CodeTooShort, "in the file: 5 bytes, at least 32"},
	}, invalid.Problems)
	require.ErrorAs(t, config.Load([]string{"KEY_FILE=" + path, "KEY=x"}, new(bounds)), &invalid)
	require.Equal(t, "KEY_FILE is set as well; which one is meant?", invalid.Problems[0].Detail)
}

type ruled struct {
	Lease time.Duration `env:"OUTBOX_LEASE" envDefault:"10s" doc:"d"`
	Poll  time.Duration `env:"OUTBOX_POLL" envDefault:"20s" doc:"d"`
	Key   config.Secret `env:"OUTBOX_KEY" doc:"d"`
	rules []config.Rule
}

func (r *ruled) Rules() []config.Rule { return r.rules }

func TestLoad_BrokenRules(t *testing.T) {
	t.Parallel()
	var invalid *config.Error
	require.ErrorAs(t, config.Load([]string{"OUTBOX_KEY=hunter2"}, &ruled{rules: []config.Rule{
		{Variable: "OUTBOX_POLL", Text: "must not be longer than OUTBOX_LEASE or OTHER_POLL"},
		{Variable: "OUTBOX_LEASE", Text: "must be longer", Holds: true},
		{Variable: "OUTBOX_KEY", Text: "must not be set"},
	}}), &invalid)
	require.Equal(t, []config.Problem{
		{
			"OUTBOX_POLL", config.CodeConflict,
			"must not be longer than OUTBOX_LEASE or OTHER_POLL (OUTBOX_POLL=20s, OUTBOX_LEASE=10s)",
		},
		{"OUTBOX_KEY", config.CodeConflict, "must not be set (OUTBOX_KEY=***)"},
	}, invalid.Problems)
}

func TestDescribe_OneSidedLimits(t *testing.T) {
	t.Parallel()
	limits := map[string]string{}
	for _, s := range config.Describe(bounds{}) {
		limits[s.Variable] = s.Limits
	}
	require.Equal(t, "up to 9s", limits["OUTBOX_SHORT"])
	require.Equal(t, "from -5", limits["DATABASE_SIGNED"])
	require.Empty(t, limits["TEXT"])
}
