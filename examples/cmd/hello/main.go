// Command hello greets each new user; run "hello help".
package main

import (
	"context"
	"os"

	"example.com/twinbox/examples/hello"
	"example.com/twinbox/internal/service"
)

func main() {
	ctx := service.SignalContext(context.Background())
	os.Exit(hello.Service.Main(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}
