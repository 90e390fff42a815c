// Command order is the example that takes orders and their payments; run "order help".
package main

import (
	"context"
	"os"

	"example.com/twinbox/examples/order"
	"example.com/twinbox/internal/service"
)

func main() {
	ctx := service.SignalContext(context.Background())
	os.Exit(order.Service.Main(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}
