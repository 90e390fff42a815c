package eventing

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/service/tracing"
	"example.com/twinbox/internal/web"
	"example.com/twinbox/migrations"
)

// Config is the configuration that all services share. Embed it.
type Config struct {
	LogLevel  string        `env:"LOG_LEVEL" envDefault:"info" oneof:"debug info warn error" doc:"least severe log lines to write"`
	LogFormat string        `env:"LOG_FORMAT" envDefault:"json" oneof:"text json" doc:"form of the log lines"`
	DrainFor  time.Duration `env:"SHUTDOWN_TIMEOUT" envDefault:"25s" min:"1s" max:"10m" doc:"how long work under way may take after a stop signal"`

	DatabaseURL config.Secret  `env:"DATABASE_URL,required" format:"postgres" doc:"the service's own database, on its primary, without a transaction pooler"`
	MigrateURL  config.Secret  `env:"MIGRATE_DATABASE_URL" format:"postgres" doc:"the same database for the owner of its tables; empty: DATABASE_URL's user owns them and may drop them"`
	AdminToken  config.Secret  `env:"ADMIN_TOKEN" min:"32" max:"4096" format:"token" doc:"token for the admin listener; empty: operations are off"`
	AdminHosts  []string       `env:"ADMIN_HOSTS" format:"host" doc:"further names of the admin listener, besides localhost, IP addresses and the host of ADMIN_ADDR; it refuses all others"`
	Environment string         `env:"ENVIRONMENT" envDefault:"local" format:"name" doc:"part of the consumer groups' names, not of the topics': each environment needs a broker of its own"`
	Pool        PoolConfig     `envPrefix:"DATABASE_"`
	Kafka       KafkaConfig    `envPrefix:"KAFKA_"`
	Outbox      OutboxConfig   `envPrefix:"OUTBOX_"`
	Inbox       InboxConfig    `envPrefix:"INBOX_"`
	Tracing     tracing.Config `envPrefix:"OTEL_"`
}

type PoolConfig struct {
	MaxConns         int           `env:"MAX_CONNECTIONS" envDefault:"40" min:"4" max:"1000" doc:"connections of the pool; the relay and a probe have one more each"`
	StatementTimeout time.Duration `env:"STATEMENT_TIMEOUT" envDefault:"30s" min:"100ms" max:"1h" doc:"for one statement, enforced by the server"`
}

type KafkaConfig struct {
	Brokers           []string      `env:"BROKERS,required" format:"address" doc:"first brokers to ask"`
	PublishTimeout    time.Duration `env:"PUBLISH_TIMEOUT" envDefault:"10s" min:"100ms" max:"5m" doc:"for one batch of the relay, retries included"`
	SessionTimeout    time.Duration `env:"SESSION_TIMEOUT" envDefault:"10s" min:"500ms" max:"5m" doc:"silence after which the group takes a consumer for dead"`
	InstanceID        string        `env:"INSTANCE_ID" envDefault:"auto" doc:"name that this process keeps over a restart: after a crash it gets its partitions back immediately instead of after KAFKA_SESSION_TIMEOUT; auto: the machine's name and the port of ADMIN_ADDR; none: no name. Of two processes with one name the earlier logs an error and continues without"`
	TLS               bool          `env:"TLS" envDefault:"false" doc:"encrypt connections to the broker"`
	CA                config.Secret `env:"CA" max:"65536" format:"pem" doc:"certificates in PEM of the broker's authorities; empty: those of the system"`
	Certificate       config.Secret `env:"CERTIFICATE" max:"65536" format:"pem" doc:"this service's certificate in PEM, if the broker asks for one"`
	Key               config.Secret `env:"KEY" max:"65536" format:"pem" doc:"its key in PEM"`
	Mechanism         string        `env:"SASL_MECHANISM" envDefault:"plain" oneof:"plain scram-sha-256 scram-sha-512" doc:"how the service logs in; plain sends the password itself, so set KAFKA_TLS too"`
	Username          string        `env:"USERNAME" doc:"SASL user; empty: no login"`
	Password          config.Secret `env:"PASSWORD" doc:"its password"`
	Partitions        int32         `env:"TOPIC_PARTITIONS" envDefault:"6" min:"1" max:"1000" doc:"of a topic that the topics command creates; docs/operations.md adds partitions to one that exists"`
	ReplicationFactor int32         `env:"TOPIC_REPLICATION_FACTOR" envDefault:"1" min:"1" max:"9" doc:"of a topic that the topics command creates; 3 in production"`
	Retention         time.Duration `env:"TOPIC_RETENTION" envDefault:"168h" min:"1m" max:"87600h" doc:"of a topic that the topics command creates"`
}

type OutboxConfig struct {
	BatchSize     int           `env:"BATCH" envDefault:"1000" min:"1" max:"100000" doc:"events per call to the broker"`
	Poll          time.Duration `env:"POLL" envDefault:"2s" min:"5ms" max:"1m" doc:"longest pause of the relay without a commit that wakes it; at most a third of OUTBOX_LEASE"`
	Notify        bool          `env:"NOTIFY" envDefault:"true" doc:"whether the other instances wake the leading relay after their commits, at most 50 times a second"`
	Lease         time.Duration `env:"LEASE" envDefault:"15s" min:"500ms" max:"10m" doc:"silence after which a leading relay that hangs or is cut off is replaced; a killed one is within a second"`
	Retention     time.Duration `env:"RETENTION" envDefault:"72h" min:"1m" max:"87600h" doc:"how long published events are kept at least; some are kept up to twice as long"`
	MaxEventBytes int           `env:"MAX_EVENT_BYTES" envDefault:"900000" min:"1024" max:"1000000" doc:"of one event with its headers; below the broker's message.max.bytes"`
	HealWithin    time.Duration `env:"HEAL_WITHIN" envDefault:"10m" min:"0s" max:"87600h" doc:"in a database that went back, the age of lost events from which an operator must confirm: it may be a copy"`
	OnConflict    string        `env:"ON_CONFLICT" envDefault:"error" oneof:"error warn" doc:"an event that is added under another event's id is refused (error) or added and logged (warn)"`
}

type InboxConfig struct {
	Retention       time.Duration `env:"RETENTION" envDefault:"240h" min:"1h" max:"87600h" doc:"how long an event is remembered, counted from its own time"`
	ReplayWindow    time.Duration `env:"REPLAY_WINDOW" envDefault:"48h" min:"0s" max:"87600h" doc:"how long after its topic's retention an event may still come, such as by a replay"`
	JanitorInterval time.Duration `env:"JANITOR_INTERVAL" envDefault:"1h" min:"1s" max:"24h" doc:"between two rounds that make table partitions and drop old ones"`
	Batch           int           `env:"BATCH" envDefault:"200" min:"1" max:"10000" doc:"events of a partition that may share a transaction"`
	HandlerTimeout  time.Duration `env:"HANDLER_TIMEOUT" envDefault:"10s" min:"100ms" max:"5m" doc:"for one attempt of an event or a batch"`
	MaxAttempts     int           `env:"MAX_ATTEMPTS" envDefault:"5" min:"1" max:"1000" doc:"attempts that fail for an unknown reason before the event is given up"`
	RetryMin        time.Duration `env:"RETRY_MIN" envDefault:"1s" min:"1ms" max:"1h" doc:"pause after the first failed attempt; doubles each time"`
	RetryMax        time.Duration `env:"RETRY_MAX" envDefault:"30s" min:"1ms" max:"1h" doc:"longest pause between attempts"`
	OnConflict      string        `env:"ON_CONFLICT" envDefault:"error" oneof:"error warn" doc:"an event id that comes back with another payload is dead-lettered (error) or only logged (warn)"`
}

func (c Config) Rules() []config.Rule {
	serving, owner, both := c.roles()
	return slices.Concat([]config.Rule{
		rule("MIGRATE_DATABASE_URL", !both || serving.Database == owner.Database,
			"must name the same database as DATABASE_URL"),
		rule("OUTBOX_LEASE", c.Kafka.PublishTimeout < c.Outbox.Lease,
			"must be longer than KAFKA_PUBLISH_TIMEOUT: a batch under way must end before the lease does"),
		rule("INBOX_RETENTION", c.Inbox.Retention > c.Kafka.Retention+c.Inbox.ReplayWindow,
			"must be longer than KAFKA_TOPIC_RETENTION and INBOX_REPLAY_WINDOW together: for as long as an event may come "+
				"again"),
		rule("INBOX_RETRY_MAX", c.Inbox.RetryMin <= c.Inbox.RetryMax, "must not be shorter than INBOX_RETRY_MIN"),
	}, c.Kafka.rules(), c.Tracing.Rules())
}

func rule(variable string, holds bool, text string) config.Rule {
	return config.Rule{Variable: variable, Holds: holds, Text: text}
}

func (c KafkaConfig) rules() []config.Rule {
	return []config.Rule{
		rule("KAFKA_INSTANCE_ID", instanceName.MatchString(c.InstanceID) && strings.Trim(c.InstanceID, ".") != "",
			"must be 1 to 200 letters, digits, dots, hyphens and underscores, as brokers take it, and not only dots"),
		rule("KAFKA_PASSWORD", (c.Username == "") == (c.Password == ""),
			"is set together with KAFKA_USERNAME or not at all"),
		rule("KAFKA_KEY", (c.Certificate == "") == (c.Key == ""),
			"is set together with KAFKA_CERTIFICATE or not at all"),
		rule("KAFKA_TLS", c.TLS || c.CA == "" && c.Certificate == "",
			"must be true where KAFKA_CA or KAFKA_CERTIFICATE is set"),
		rule("KAFKA_CA", isPEM(c.CA, "", ""), "must hold certificates in PEM"),
		rule("KAFKA_CERTIFICATE", isPEM("", c.Certificate, c.Key), "must be a certificate in PEM whose key is KAFKA_KEY"),
		rule("KAFKA_TLS", c.TLS || c.Password == "" || c.Mechanism != kafka.Plain,
			"must be true with KAFKA_PASSWORD and plain: a password is sent over TLS only"),
	}
}

// APIRules returns the cross checks of a service with an API.
func (c Config) APIRules(request time.Duration) []config.Rule {
	return append(c.Rules(),
		rule("SHUTDOWN_TIMEOUT", c.DrainFor >= request,
			"must not be shorter than REQUEST_TIMEOUT: a request under way is answered"))
}

// Server returns an API's server. During a stop it answers the longest request.
func (c Config) Server(request time.Duration, handler http.Handler, log *slog.Logger) *web.Server {
	return &web.Server{
		Handler: handler, Log: log, DrainTimeout: max(c.DrainFor/2, request), WriteTimeout: request + 15*time.Second,
	}
}

func (c Config) adminNames(addr string) []string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil || host == "" {
		return c.AdminHosts
	}
	return append([]string{host}, c.AdminHosts...)
}

// poll lets a leader look often enough to keep its lease.
func (c Config) poll() time.Duration { return min(c.Outbox.Poll, c.Outbox.Lease/3) }

func (c Config) maxSilence() time.Duration { return max(c.Kafka.PublishTimeout*3/2, 2*c.poll()) }

// rebalanceTimeout lets a handler end and, cancelled, end again.
func (c Config) rebalanceTimeout() time.Duration { return max(5*time.Second, 3*c.Inbox.HandlerTimeout) }

func (c Config) Client(service string) kafka.Config {
	client := kafka.Config{
		Brokers: c.Kafka.Brokers, ClientID: service, PublishTimeout: c.Kafka.PublishTimeout,
		User: c.Kafka.Username, Password: c.Kafka.Password.Reveal(), Mechanism: c.Kafka.Mechanism,
	}
	if c.Kafka.TLS {
		client.TLS, _ = kafka.TLS(c.Kafka.CA.Reveal(), c.Kafka.Certificate.Reveal(), c.Kafka.Key.Reveal())
	}
	return client
}

func isPEM(ca, certificate, key config.Secret) bool {
	_, err := kafka.TLS(ca.Reveal(), certificate.Reveal(), key.Reveal())
	return err == nil
}

func (c Config) Topics(names ...string) []kafka.Topic {
	topics := make([]kafka.Topic, len(names))
	for i, name := range names {
		topics[i] = kafka.Topic{
			Name:              name,
			Partitions:        c.Kafka.Partitions,
			ReplicationFactor: int16(c.Kafka.ReplicationFactor),
			Retention:         c.Kafka.Retention,
		}
	}
	return topics
}

// Two projects on one broker share no group.
const project = "twinbox"

func (c Config) Group(consumer string) string { return project + "." + c.Environment + "." + consumer }

// Migrate brings the database to this build's schema, grants the serving role its rights, and prints the migrations.
func (c Config) Migrate(ctx context.Context, out io.Writer, sets ...migrations.Set) error {
	migration := migrations.Migration{
		URL: cmp.Or(c.MigrateURL, c.DatabaseURL).Reveal(), Sets: sets,
		Report: func(line string) { _, _ = fmt.Fprintln(out, line) },
	}
	if serving, owner, both := c.roles(); both && serving.User != owner.User {
		migration.Role = serving.User
	}
	applied, err := migration.Run(ctx)
	for _, file := range applied {
		_, _ = fmt.Fprintf(out, "applied %s\n", file)
	}
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	_, _ = fmt.Fprintf(out, "%d migrations applied, the schema is up to date\n", len(applied))
	if migration.Role != "" {
		_, _ = fmt.Fprintf(out, "%s may serve\n", migration.Role)
	}
	return nil
}

// Migrate may have connected as another role.
func (c Config) checkLogin(ctx context.Context) error {
	pool, err := parsePool(c.DatabaseURL)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, pool.ConnConfig)
	if err != nil {
		return fmt.Errorf("log in with DATABASE_URL: %w", err)
	}
	return conn.Close(ctx)
}

// roles ignores a URL that cannot be read: another check reports it.
func (c Config) roles() (serving, owner *pgx.ConnConfig, both bool) {
	if c.MigrateURL == "" {
		return nil, nil, false
	}
	serving, servingErr := pgx.ParseConfig(c.DatabaseURL.Reveal())
	owner, ownerErr := pgx.ParseConfig(c.MigrateURL.Reveal())
	return serving, owner, servingErr == nil && ownerErr == nil
}
