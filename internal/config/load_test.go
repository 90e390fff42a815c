package config_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/config"
)

type policy string

type inboxConfig struct {
	Batch     int           `env:"BATCH" envDefault:"100" min:"1" max:"1000" doc:"events per transaction"`
	Retention time.Duration `env:"RETENTION" envDefault:"336h" min:"1h" doc:"how long ids are remembered"`
	Conflict  policy        `env:"CONFLICT" envDefault:"error" oneof:"error warn" doc:"same id, other payload"`
}

type sample struct {
	Database  config.Secret  `env:"DATABASE_URL,required" format:"postgres" doc:"where it stores"`
	Key       config.Secret  `env:"VERIFICATION_SECRET,required" min:"32" max:"64" doc:"signs links"`
	Brokers   []string       `env:"KAFKA_BROKERS,required" format:"address" doc:"first brokers to ask"`
	Names     []string       `env:"KAFKA_NAMES" doc:"any list"`
	SMTP      string         `env:"SMTP_ADDR" envDefault:"mail:25" format:"address" doc:"mail server"`
	Listen    string         `env:"HTTP_ADDR" envDefault:":8080" format:"listen" doc:"API"`
	Public    string         `env:"PUBLIC_URL" envDefault:"http://localhost:8080" format:"url" doc:"base of links"`
	From      string         `env:"MAIL_FROM" envDefault:"Twinbox <no-reply@example.org>" format:"mail" doc:"sender"`
	Proxies   []netip.Prefix `env:"TRUSTED_PROXIES" format:"network" doc:"in front"`
	Hosts     []string       `env:"ADMIN_HOSTS" format:"host" doc:"names of the listener"`
	Token     config.Secret  `env:"ADMIN_TOKEN" min:"32" format:"token" doc:"of operators"`
	Env       string         `env:"ENVIRONMENT" envDefault:"local" format:"name" doc:"part of group ids"`
	Lease     time.Duration  `env:"OUTBOX_LEASE" envDefault:"10s" min:"1s" max:"5m" doc:"leader's lease"`
	Poll      time.Duration  `env:"OUTBOX_POLL" envDefault:"1s" doc:"at least every"`
	Pause     time.Duration  `env:"OUTBOX_PAUSE" envDefault:"0s" min:"0s" doc:"may be zero"`
	Pool      int32          `env:"DATABASE_POOL_SIZE" envDefault:"10" min:"1" max:"1000" doc:"connections"`
	Bytes     int64          `env:"OUTBOX_MAX_BYTES" envDefault:"900000" doc:"largest event"`
	TLS       bool           `env:"SMTP_TLS" envDefault:"true" doc:"require TLS"`
	Inbox     inboxConfig    `envPrefix:"INBOX_"`
	untouched string
	Untagged  string
}

func (s *sample) Rules() []config.Rule {
	return []config.Rule{
		{Variable: "OUTBOX_POLL", Holds: s.Poll <= s.Lease, Text: "must not be longer than OUTBOX_LEASE"},
		{Variable: "INBOX_BATCH", Holds: s.Inbox.Batch != 13, Text: "must not be 13"},
	}
}

const key = "0123456789abcdef0123456789abcdef"

func valid(more ...string) []string {
	return append([]string{
		"DATABASE_URL=postgres://u:hunter2@db:5432/customer?sslmode=disable",
		"VERIFICATION_SECRET=" + key,
		"KAFKA_BROKERS=a:9092,b:9092",
		"PATH=/bin", "not a variable", "=odd",
	}, more...)
}

// load returns the variables with problems.
func load(t *testing.T, environ []string, into any) (variables []string) {
	t.Helper()
	for _, p := range problems(t, environ, into) {
		require.NotEmpty(t, p.Detail)
		variables = append(variables, p.Variable)
	}
	return variables
}

func problems(t *testing.T, environ []string, into any) []config.Problem {
	t.Helper()
	err := config.Load(environ, into)
	if err == nil {
		return nil
	}
	var invalid *config.Error
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, 2, invalid.ExitCode())
	return invalid.Problems
}

func TestLoad_Defaults(t *testing.T) {
	t.Parallel()
	var cfg sample
	cfg.untouched, cfg.Untagged = "x", "y"
	require.Empty(t, load(t, valid(), &cfg))
	require.Equal(t, sample{
		Database: "postgres://u:hunter2@db:5432/customer?sslmode=disable",
		Key:      key,
		Brokers:  []string{"a:9092", "b:9092"},
		SMTP:     "mail:25", Listen: ":8080", Public: "http://localhost:8080",
		From: "Twinbox <no-reply@example.org>", Env: "local",
		Lease: 10 * time.Second, Poll: time.Second, Pool: 10, Bytes: 900_000, TLS: true,
		Inbox:     inboxConfig{Batch: 100, Retention: 336 * time.Hour, Conflict: "error"},
		untouched: "x", Untagged: "y",
	}, cfg)
}

func TestLoad_Values(t *testing.T) {
	t.Parallel()
	var cfg sample
	require.Empty(t, load(t, valid(
		"OUTBOX_LEASE=1m30s", "OUTBOX_PAUSE=0", "DATABASE_POOL_SIZE=1000", "SMTP_TLS=false", "INBOX_CONFLICT=warn",
		"KAFKA_BROKERS=[::1]:9092,10.0.0.1:9092,kafka_1.local:65535", "HTTP_ADDR=127.0.0.1:0", "ENVIRONMENT=prod-2",
		"INBOX_BATCH=7", "INBOX_BATCH=8", "PUBLIC_URL=https://example.org/app",
		"TRUSTED_PROXIES=10.0.0.0/8,fd00::/8",
	), &cfg))
	require.Equal(t, 90*time.Second, cfg.Lease)
	require.Zero(t, cfg.Pause)
	require.EqualValues(t, 1000, cfg.Pool)
	require.False(t, cfg.TLS)
	require.Equal(t, policy("warn"), cfg.Inbox.Conflict)
	require.Len(t, cfg.Brokers, 3)
	require.Equal(t, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}, cfg.Proxies)
	require.Equal(t, 8, cfg.Inbox.Batch, "the later of two counts")
}

func TestLoad_NothingSet(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"DATABASE_URL", "VERIFICATION_SECRET", "KAFKA_BROKERS"},
		load(t, nil, new(sample)), "every problem, in the order of the fields")
}

func TestLoad_AllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	environ := []string{
		"DATABASE_URL=postgres://u:hunter2@db", "KAFKA_BROKERS=a", "OUTBOX_POLL=20s", "SMTP_TLS=x", "INBOX_BATCH=13",
		"OUTBOX_LEESE=1s",
	}
	require.Equal(t, []string{
		"DATABASE_URL", "VERIFICATION_SECRET", "KAFKA_BROKERS", "SMTP_TLS", "OUTBOX_POLL", "INBOX_BATCH", "OUTBOX_LEESE",
	}, load(t, environ, new(sample)))
	require.NotContains(t, load(t, append(environ, "OUTBOX_LEASE=x"), new(sample)), "OUTBOX_POLL",
		"a cross check that names a variable with a problem is left out")
}

func TestLoad_UnknownVariables(t *testing.T) {
	t.Parallel()
	environ := valid(
		"OUTBOX_LEASES=5s", "KAFKA_BROKERS_FILE=/x", "SMTP_PORT=587", "DATABASE_URLS=x", "INBOX_ZZZZZZ=1",
		// Kubernetes injects all but the last.
		"KAFKA_SERVICE_HOST=10.0.0.7", "KAFKA_SERVICE_PORT=9092", "KAFKA_SERVICE_PORT_CLIENT=9092",
		"KAFKA_PORT=tcp://10.0.0.7:9092", "KAFKA_PORT_9092_TCP=tcp://10.0.0.7:9092", "KAFKA_PORT_9092_TCP_ADDR=10.0.0.7",
		"KAFKA_PORT_9092_TCP_PROTO=tcp", "SMTP_MAIL_SERVICE_HOST=10.0.0.8", "HTTP_PROXY=http://proxy:3128",
	)
	require.Equal(t, []string{"DATABASE_URLS", "INBOX_ZZZZZZ", "KAFKA_BROKERS_FILE", "OUTBOX_LEASES", "SMTP_PORT"},
		load(t, environ, new(sample)))
}

// Neither the prefix of its struct nor env's names for list members make a field a setting.
func TestLoad_OnlySettingsAreRead(t *testing.T) {
	t.Parallel()
	type part struct {
		Networks []netip.Prefix `env:"NETWORKS" format:"network"`
		Untagged []map[string]int
	}
	var cfg struct {
		Part part           `envPrefix:"INBOX_"`
		Flat []netip.Prefix `env:"FLAT" format:"network"`
	}
	environ := []string{"INBOX_NETWORKS=10.0.0.0/8", "INBOX_=x", "INBOX_0_X=y", "0_X=z"}
	require.Equal(t, []string{"INBOX_", "INBOX_0_X"}, load(t, environ, &cfg))
	require.Equal(t, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, cfg.Part.Networks)
	require.Nil(t, cfg.Flat)
}

func TestLoad_RulesOfAnEmbeddedConfig(t *testing.T) {
	t.Parallel()
	var cfg struct{ Outer }
	require.Equal(t, []string{"LOG_LEVEL"}, load(t, nil, &cfg))
	require.Equal(t, "info", cfg.Level)
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
	require.Equal(t, []config.Problem{
		{"OUTBOX_POLL", "must not be longer than OUTBOX_LEASE or OTHER_POLL (OUTBOX_LEASE=10s, OUTBOX_POLL=20s)"},
		{"OUTBOX_KEY", "must not be set (OUTBOX_KEY=***)"},
	}, problems(t, []string{"OUTBOX_KEY=hunter2"}, &ruled{rules: []config.Rule{
		{Variable: "OUTBOX_POLL", Text: "must not be longer than OUTBOX_LEASE or OTHER_POLL"},
		{Variable: "OUTBOX_LEASE", Text: "must be longer", Holds: true},
		{Variable: "OUTBOX_KEY", Text: "must not be set"},
	}}))
}

func TestLoad_WordsInAnyCase(t *testing.T) {
	t.Parallel()
	var cfg struct {
		Word string `env:"GREETING" oneof:"Welcome Good-day" doc:"d"`
	}
	for _, text := range []string{"Good-day", "good-day", "GOOD-DAY"} {
		require.NoError(t, config.Load([]string{"GREETING=" + text}, &cfg), text)
		require.Equal(t, "Good-day", cfg.Word, "stored as the tag has it")
	}
}

func TestLoad_OptionalSecretMayBeEmpty(t *testing.T) {
	t.Parallel()
	var cfg struct {
		Token config.Secret `env:"ADMIN_TOKEN" min:"32" doc:"who may operate it"`
		Key   config.Secret `env:"KEY,required" min:"4" doc:"signs"`
	}
	require.NoError(t, config.Load([]string{"ADMIN_TOKEN=", "KEY=long"}, &cfg))
	require.Empty(t, cfg.Token.Reveal())
	require.ErrorContains(t, config.Load([]string{"ADMIN_TOKEN=short", "KEY=long"}, &cfg), "ADMIN_TOKEN: is out of bounds")
	require.ErrorContains(t, config.Load([]string{"KEY="}, &cfg), "KEY: is set to nothing")
}

type Outer struct{ Common }

type Common struct {
	Level string `env:"LOG_LEVEL" envDefault:"info" oneof:"debug info" doc:"d"`
}

func (Common) Rules() []config.Rule {
	return []config.Rule{{Variable: "LOG_LEVEL", Text: "never holds"}}
}

func ExampleLoad() {
	var cfg struct {
		Brokers []string      `env:"KAFKA_BROKERS,required" format:"address" doc:"first brokers to ask"`
		Lease   time.Duration `env:"OUTBOX_LEASE" envDefault:"10s" min:"1s" max:"5m" doc:"how long a leader leads"`
	}
	fmt.Println(config.Load([]string{"OUTBOX_LEASE=5", "KAFKA_BROKER=kafka:9092"}, &cfg))
	// Output:
	// read configuration: 3 problem(s)
	//   KAFKA_BROKERS: is required: first brokers to ask
	//   OUTBOX_LEASE: unable to parse duration: time: missing unit in duration "5"
	//   KAFKA_BROKER: nothing reads it
}
