// Command customer is the service that people sign up with; run "customer help".
package main

import (
	"context"
	"os"

	"example.com/twinbox/internal/customer"
	"example.com/twinbox/internal/service"
)

func main() {
	ctx := service.SignalContext(context.Background())
	os.Exit(customer.Service.Main(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}
