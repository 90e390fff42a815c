// Package guide_test runs the service that docs/building.md builds: the page's Go code is also in this file, and the
// table is made by the page's SQL.
package guide_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/contract/contracttest"
	"example.com/twinbox/internal/customer"
	"example.com/twinbox/internal/domain"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/notification"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/inboxtest"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/servicetest"
	"example.com/twinbox/test/testkit"
)

// Config is everything that Loyalty reads from its environment.
type Config struct {
	AdminAddr string `env:"ADMIN_ADDR" envDefault:"127.0.0.1:8083" format:"listen" doc:"listener for /livez, /readyz and /metrics"`

	eventing.Config
}

// Listeners returns the operators' listener. Loyalty has no API.
func (c Config) Listeners() eventing.Listeners { return eventing.Listeners{Admin: c.AdminAddr} }

// Topics returns the topics that Loyalty writes to. It publishes no events.
func (Config) Topics() []kafka.Topic { return nil }

// Service is Loyalty.
var Service = eventing.Service[Config]{
	Name:       "loyalty",
	Source:     "/twinbox/loyalty",
	Contract:   contract.Load,
	Migrations: migrations.For("loyalty"),
	SetUp:      setUp,
}

func setUp(node *eventing.Node, _ Config) (start func(*service.Group, net.Listener), err error) {
	start = func(group *service.Group, _ net.Listener) { node.StartConsumers(group) }
	return start, node.Consume(eventing.Consumer{
		Name: usersConsumer, Topic: contract.TopicUsers, Handlers: userEvents(), Order: inbox.Strict,
	})
}

const usersConsumer = "loyalty.users"

func userEvents() *inbox.Mux {
	mux := inbox.NewMux()
	inbox.Handle(mux, contract.UserRegistered, grantPoints)
	return mux
}

const insertPoints = `insert into points (user_id, points) values ($1, 100)`

func grantPoints(ctx context.Context, tx pgx.Tx, _ event.Event, data domain.UserRegistered) error {
	return inbox.Queue(ctx, tx, insertPoints, string(data.UserID))
}

func TestPointsAreGrantedOnce(t *testing.T) {
	t.Parallel()
	inboxtest.RequireIdempotent(t, inboxtest.Idempotence{
		Handlers:   func(*pgxpool.Pool) inboxtest.Handlers { return userEvents() },
		Migrations: tables(t),
		Events:     []event.Event{contracttest.Example(t, contract.UserRegistered.Declaration, 1)},
	})
}

func TestAPlainHandlerGrantsPointsOnce(t *testing.T) {
	t.Parallel()
	consumer := eventing.Consumer{
		Handler: func(msg *message.Message) error {
			tx, _ := inbox.TxFromContext(msg.Context())
			e, _ := inbox.EventFromContext(msg.Context())
			_, err := tx.Exec(msg.Context(), insertPoints, e.Key)
			return err
		},
		Types: []string{contract.UserRegistered.Type},
	}
	inboxtest.RequireIdempotent(t, inboxtest.Idempotence{
		Handlers: func(*pgxpool.Pool) inboxtest.Handlers {
			return inboxtest.Plain(consumer.Handler, consumer.Types...)
		},
		Migrations: tables(t),
		Events:     []event.Event{contracttest.Example(t, contract.UserRegistered.Declaration, 1)},
	})
}

func TestNoEventOfItsOwnIsMissed(t *testing.T) {
	t.Parallel()
	servicetest.RequireOwnEventsHandled(t, Service.Describe())
}

// The topic for copies of dead letters comes with the consumer.
func TestTheTopicsCommandCreatesTheTopicOfCopies(t *testing.T) {
	t.Parallel()
	environ := []string{
		"DATABASE_URL=postgres://nobody@127.0.0.1:1/none", "KAFKA_BROKERS=" + kafkatest.Brokers(t)[0], "ENVIRONMENT=guide",
	}
	code, stdout, stderr := servicetest.Run(Service.Main).Command(t, environ, "topics")
	require.Zero(t, code, stderr)
	require.Equal(t, "dlq.twinbox.guide.loyalty.users.customer.users.v1: 6 partitions, kept 168h0m0s\n", stdout)
}

func TestMain(m *testing.M) { kafkatest.Main(m) }

// tables returns the migrations of Loyalty's database: the service's own and the one that the page shows.
func tables(t *testing.T) []migrations.Set {
	t.Helper()
	page, err := os.ReadFile("../../docs/building.md")
	require.NoError(t, err)
	_, sql, found := strings.Cut(string(page), "```sql\n")
	require.True(t, found)
	sql, _, _ = strings.Cut(sql, "```")
	files := fstest.MapFS{"0001_loyalty.sql": {Data: []byte(sql)}}
	return append(migrations.For("loyalty"), migrations.Set{Name: "loyalty", FS: files})
}

// A sign-up with Customer reaches Loyalty's table.
func TestASignUpGetsPoints(t *testing.T) {
	t.Parallel()
	const secret = "VERIFICATION_SECRET=0123456789abcdef0123456789abcdef"
	loyalty := Service.Describe()
	loyalty.Migrations = tables(t)
	system := servicetest.Start(t,
		servicetest.Part{Described: customer.Service.Describe(), Environ: []string{secret}},
		servicetest.Part{Described: notification.Service.Describe(), Environ: []string{
			secret, "SMTP_ADDR=" + testkit.StartMailServer(t, nil).Addr(), "SMTP_TLS=none",
		}},
		servicetest.Part{Described: loyalty},
	)
	content, err := os.ReadFile("../../api/openapi.yaml")
	require.NoError(t, err)
	document, err := testkit.ParseOpenAPI(content)
	require.NoError(t, err)
	client := &testkit.APIClient{URL: "http://" + system.API("customer"), Document: document}
	answer := client.Do(t, http.MethodPost, "/v1/signups", `{"email":"ada@example.org","name":"Ada"}`)
	require.Equal(t, http.StatusCreated, answer.Status)
	system.Settle()
	var points int
	require.NoError(t, system.Pool("loyalty").QueryRow(t.Context(), `select points from points where user_id = $1`,
		answer.JSON(t)["user_id"]).Scan(&points))
	require.Equal(t, 100, points)
}
