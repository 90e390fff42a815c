package service

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// SignalContext returns a context that the first SIGINT or SIGTERM cancels: the process drains. From then on signals
// have their usual effect again, so a second one ends the process at once.
//
// The handlers stay until a signal or the end of the parent; it is meant for main.
func SignalContext(parent context.Context) context.Context {
	ctx, stop := signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx
}
