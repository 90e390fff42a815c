// Command ledger keeps accounts and their balances; run "ledger help".
package main

import (
	"context"
	"os"

	"example.com/twinbox/examples/ledger"
	"example.com/twinbox/internal/service"
)

func main() {
	ctx := service.SignalContext(context.Background())
	os.Exit(ledger.Service.Main(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}
