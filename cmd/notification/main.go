// Command notification is the service that sends mail; run "notification help".
package main

import (
	"context"
	"os"

	"example.com/twinbox/internal/notification"
	"example.com/twinbox/internal/service"
)

func main() {
	ctx := service.SignalContext(context.Background())
	os.Exit(notification.Service.Main(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}
