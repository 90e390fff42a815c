package hello_test

import (
	"net/http"
	"os"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/examples/hello"
	"example.com/twinbox/examples/hello/contract"
	"example.com/twinbox/internal/contract/contracttest"
	"example.com/twinbox/internal/customer"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/test/inboxtest"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/outboxtest"
	"example.com/twinbox/test/servicetest"
	"example.com/twinbox/test/testkit"
)

func TestMain(m *testing.M) { kafkatest.Main(m) }

func TestGreetingsAreSaidAndTold(t *testing.T) {
	t.Parallel()
	system := servicetest.Start(t,
		servicetest.Part{Described: customer.Service.Describe(), Environ: []string{
			"VERIFICATION_SECRET=0123456789abcdef0123456789abcdef",
		}},
		servicetest.Part{Described: hello.Service.Describe(), Environ: []string{"GREETING=good-day"}},
	)
	api := testkit.APIClient{URL: "http://" + system.API("customer"), Document: document(t, "../../api/openapi.yaml")}
	require.Equal(t, http.StatusCreated,
		api.Do(t, http.MethodPost, "/v1/signups", `{"email":"ada@example.org","name":"Ada"}`).Status)
	system.Settle()
	pool := system.Pool("hello")
	require.Equal(t, "Good-day, Ada!", outboxtest.RequireAdded(t, pool, contract.HelloSaid).Text)

	api = testkit.APIClient{URL: "http://" + system.API("hello"), Document: document(t, "openapi.yaml")}
	answer := api.Do(t, http.MethodPost, "/v1/greetings", `{"name":"Grace"}`)
	require.Equal(t, http.StatusCreated, answer.Status)
	require.Equal(t, "Good-day, Grace!", answer.JSON(t)["text"])
	require.Equal(t, http.StatusUnprocessableEntity, api.Do(t, http.MethodPost, "/v1/greetings", `{"name":" "}`).Status)
	system.Settle()
	require.Len(t, outboxtest.Added(t, pool, outboxtest.Type(contract.HelloSaid)), 2)
	var rows int
	require.NoError(t, pool.QueryRow(t.Context(), `select count(*) from greeting`).Scan(&rows))
	require.Equal(t, 2, rows)
}

func document(t *testing.T, file string) *testkit.OpenAPI {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	read, err := testkit.ParseOpenAPI(content)
	require.NoError(t, err)
	return read
}

// The process may die at any statement.
func TestASignUpIsGreetedOnce(t *testing.T) {
	t.Parallel()
	consumer := servicetest.Consumer(t, hello.Service.Describe(), "hello.users")
	checker, err := contract.Load()
	require.NoError(t, err)
	inboxtest.RequireIdempotent(t, inboxtest.Idempotence{
		Tables: []string{"greeting"}, Except: []string{"greeting.id", "greeting.said_at", "outbox_key.key"},
		Handlers: func(*pgxpool.Pool) inboxtest.Handlers {
			return inboxtest.Plain(consumer.Handler, consumer.Types...)
		},
		Migrations: hello.Migrations(), Configure: inboxtest.Checked(checker.Validate),
		Events: []event.Event{contracttest.Example(t, contract.UserRegistered.Declaration, 1)},
	})
}
