// Command notification is the service that sends mail; run "notification help".
package main

import (
	"context"
	"os"

	"example.com/twinbox/frame/service"
)

func main() {
	ctx := service.SignalContext(context.Background())
	os.Exit(run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}
