// Package hello is a whole service in one folder. It greets each new user, and on request, with one route, one event,
// one consumer and one setting.
package hello

import (
	"embed"
	"errors"
	"log/slog"
	"net/http"

	"example.com/twinbox/examples/hello/contract"
	"example.com/twinbox/internal/command"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/internal/web"
	"example.com/twinbox/migrations"
)

var Service = eventing.Service[Config]{
	Name:       "hello",
	Source:     contract.SourceHello,
	Contract:   contract.Load,
	API:        openAPI,
	Migrations: Migrations(),
	Operations: offerOperations,
	SetUp:      setUp,
}

//go:generate env CGO_ENABLED=0 go run example.com/twinbox/dev/tools/apijson openapi.yaml openapi.gen.json

//go:embed openapi.gen.json
var openAPI []byte

//go:embed migrations/*.sql
var files embed.FS

func Migrations() []migrations.Set {
	return []migrations.Set{
		migrations.Audit, migrations.Outbox, migrations.Inbox, migrations.Folder("hello", files, "migrations"),
		migrations.Command,
	}
}

func setUp(node *eventing.Node, cfg Config) error {
	g := &greeter{outbox: node.Outbox, word: cfg.Word}
	a := &api{greeter: g, transaction: command.Transaction{Pool: node.Pool, Timeout: cfg.RequestTimeout}}
	handler := newHandler(a, web.Config{
		RequestTimeout: cfg.RequestTimeout, Registerer: node.Admin.Registry(), Traces: node.Traces,
	}, node.Log)
	node.Serve(cfg.Server(cfg.RequestTimeout, handler, node.Log).Serve)
	return errors.Join(
		node.Consume(eventing.Consumer{
			Name: "hello.users", Topic: contract.TopicUsers,
			Types: []string{contract.UserRegistered.Type}, Handler: g.welcome,
		}),
	)
}

func newHandler(a *api, cfg web.Config, log *slog.Logger) http.Handler {
	cfg.MapError, cfg.Document = command.Problem, openAPI
	router := web.NewRouter(cfg, log)
	router.Post("/v1/greetings", a.say)
	return router
}
