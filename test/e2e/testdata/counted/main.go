// Command counted runs one of the services, named by its first argument, in a coverage build. At the nth SIGUSR1 it
// writes its counters to the folder n of GOCOVERDIR, and clears them.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/coverage"
	"strconv"
	"syscall"

	"example.com/twinbox/internal/customer"
	"example.com/twinbox/internal/notification"
	"example.com/twinbox/internal/service"
)

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	go func() {
		for n := 1; ; n++ {
			<-signals
			if err := writeCounters(filepath.Join(os.Getenv("GOCOVERDIR"), strconv.Itoa(n))); err != nil {
				panic(err)
			}
		}
	}()
	run := customer.Service.Main
	if os.Args[1] == notification.Service.Name {
		run = notification.Service.Main
	}
	os.Exit(run(service.SignalContext(context.Background()), os.Args[2:], os.Environ(), os.Stdout, os.Stderr))
}

// writeCounters renames the folder when it is complete.
func writeCounters(folder string) error {
	part := folder + ".part"
	return errors.Join(
		os.Mkdir(part, 0o700),
		coverage.WriteMetaDir(part),
		coverage.WriteCountersDir(part),
		coverage.ClearCounters(),
		os.Rename(part, folder),
	)
}
