// Package contract declares the events of the ledger, for all services that read them.
package contract

import (
	"embed"

	"example.com/twinbox/examples/ledger/account"
	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/event"
)

// TopicAccounts is the ledger's topic, whose key is the account; SourceLedger is its ce_source.
const (
	TopicAccounts = contract.TopicPrefix + "ledger.accounts.v1"
	SourceLedger  = "/twinbox/ledger"
)

var (
	AccountOpened = define[account.Opened]("account-opened.v1")
	FundsCredited = define[account.FundsCredited]("funds-credited.v1")
	FundsDebited  = define[account.FundsDebited]("funds-debited.v1")
)

// All returns every declaration, in the order of an account's life.
func All() []event.Declaration {
	return []event.Declaration{AccountOpened.Declaration, FundsCredited.Declaration, FundsDebited.Declaration}
}

// Files has the schemas, and an example of each payload.
//
//go:embed events/*.json events/examples/*.json
var Files embed.FS

// Load compiles the schemas. It fails only when one is broken or missing.
func Load() (*event.Checker, error) { return event.LoadSchemas(Files, All()...) }

func define[T event.Ruled](name string) event.Definition[T] {
	return event.Define[T](event.Declaration{
		Type:       contract.TypePrefix + "ledger." + name,
		Topic:      TopicAccounts,
		Source:     SourceLedger,
		DataSchema: "https://example.com/twinbox/examples/ledger/events/" + name + ".json",
	})
}
