package eventing_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/cloudevent"
	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/domain"
	"example.com/twinbox/internal/eventing"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/kafkatest"
	"example.com/twinbox/internal/pgtest"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/migrations"
)

// The service of docs/building.md, as the page shows it.

type Config struct {
	AdminAddr     string        `env:"ADMIN_ADDR" envDefault:"127.0.0.1:8083" format:"listen" doc:"listener for /livez, /readyz and /metrics"`
	DrainFor      time.Duration `env:"SHUTDOWN_TIMEOUT" envDefault:"25s" min:"1s" max:"10m" doc:"how long work under way may take after the first signal"`
	WelcomePoints int           `env:"WELCOME_POINTS" envDefault:"100" min:"0" max:"100000" doc:"what a new user starts with"`

	eventing.Config
}

func (c Config) Validate() []config.Problem { return c.Problems() }

const insertPoints = `insert into points (user_id, points) values ($1, $2)`

func (c Config) userEvents() *inbox.Mux {
	mux := inbox.NewMux()
	inbox.Handle(mux, contract.UserRegistered.Type,
		func(ctx context.Context, tx pgx.Tx, _ cloudevent.Event, data domain.UserRegistered) error {
			return inbox.Queue(ctx, tx, insertPoints, data.UserID, c.WelcomePoints)
		})
	return mux
}

func Run(ctx context.Context, cfg Config, host service.Host) error {
	group := service.NewGroup(ctx, host.Log, cfg.DrainFor)
	admin := service.NewAdmin(service.AdminConfig{Log: host.Log, Draining: group.Draining()})
	events, err := contract.Load()
	if err != nil {
		return fmt.Errorf("load contract: %w", err)
	}
	node, err := eventing.Open(ctx, eventing.Setup{
		Service: "loyalty", Config: cfg.Config, Migrations: loyaltySets, Validate: events.Validate,
		Topics: cfg.Topics(cfg.CopyTopic("loyalty.users", contract.TopicUsers)), Admin: admin, Log: host.Log,
	})
	if err != nil {
		return err
	}
	err = node.Consume(eventing.Consumer{
		Name: "loyalty.users", Topic: contract.TopicUsers, Handlers: cfg.userEvents(), Versioned: true,
	})
	if err != nil {
		return errors.Join(err, node.Close())
	}
	return node.Run(ctx, group, eventing.Listeners{Admin: cfg.AdminAddr}, host,
		func(group *service.Group, _ net.Listener) { node.StartConsumers(group) })
}

var loyaltySets = []migrations.Set{migrations.Audit, migrations.Outbox, migrations.Inbox, {
	Name: "loyalty", FS: fstest.MapFS{"0001_points.sql": {Data: []byte("-- +goose Up\n" +
		"create table points (user_id uuid primary key, points bigint not null);\n")}},
}}

// The service is started as the page says and gets an event that another service wrote.
func TestTheServiceOfThePageWorks(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	pool := pgtest.New(t, loyaltySets...)
	var cfg Config
	require.NoError(t, config.Load([]string{
		"DATABASE_URL=" + pgtest.DSN(pool), "KAFKA_BROKERS=" + brokers[0], "ADMIN_ADDR=127.0.0.1:0",
		"ENVIRONMENT=t" + kafkaSafe(t),
	}, &cfg))
	ensureTopic(t, cfg.Config, contract.TopicUsers)
	ensureTopic(t, cfg.Config, cfg.CopyTopic("loyalty.users", contract.TopicUsers))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, cfg, service.Host{Log: slog.New(slog.DiscardHandler)}) }()

	user := somebodySignsUp(t, brokers)
	require.Eventually(t, func() bool {
		var points int
		err := pool.QueryRow(t.Context(), `select points from points where user_id = $1`, user).Scan(&points)
		return err == nil && points == 100
	}, patience, pollEvery)
	stop()
	require.NoError(t, <-ended)
}

// somebodySignsUp writes what Customer would.
func somebodySignsUp(t *testing.T, brokers []string) domain.UserID {
	t.Helper()
	id, at := domain.UserID(uuid.Must(uuid.NewV7()).String()), time.Now().UTC()
	definition, data, err := contract.Encode(domain.UserRegistered{
		UserID: id, Email: "ada@example.org", Name: "Ada", RegisteredAt: at,
	})
	require.NoError(t, err)
	record, err := kafka.Marshaler{}.Marshal(contract.TopicUsers, cloudevent.Event{
		ID: uuid.Must(uuid.NewV7()).String(), Source: definition.Source, Type: definition.Type, Subject: string(id),
		Version: 1, Time: at, DataSchema: definition.SchemaURI, Data: data,
	}.Message())
	require.NoError(t, err)
	sendRaw(t, brokers, record)
	return id
}
