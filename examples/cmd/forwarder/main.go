// Command forwarder is the example that posts events to a URL; run "forwarder help".
package main

import (
	"context"
	"os"

	"example.com/twinbox/examples/forwarder"
	"example.com/twinbox/internal/service"
)

func main() {
	ctx := service.SignalContext(context.Background())
	os.Exit(forwarder.Program.Run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}
