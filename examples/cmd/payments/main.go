// Command payments is the example of a payment provider; run "payments help".
package main

import (
	"context"
	"os"

	"example.com/twinbox/examples/payments"
	"example.com/twinbox/internal/service"
)

func main() {
	ctx := service.SignalContext(context.Background())
	os.Exit(payments.Service.Main(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}
