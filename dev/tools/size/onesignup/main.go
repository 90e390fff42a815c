// Command onesignup runs the whole system, signs people up one after the other, waits for each one's mail, and writes
// for each which code ran in between, into a folder of its own: onesignup STATE COUNTERS. Command size builds it with
// coverage; without, it fails.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime/coverage"
	"strings"
	"time"

	"example.com/twinbox/dev/local"
	"example.com/twinbox/internal/service"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: onesignup STATE COUNTERS")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "onesignup:", err)
		os.Exit(1)
	}
}

const patience = time.Minute

// run stops the system as soon as the counters are written.
func run(ctx context.Context, state, counters string) error {
	service.StartTracing()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	measured := make(chan error, 1)
	err := local.Run(ctx, local.Config{
		Dir: state,
		Ready: func(at local.Addresses) {
			go func() {
				defer stop()
				measured <- measure(ctx, at, counters)
			}()
		},
	})
	select {
	case failed := <-measured:
		return errors.Join(failed, err)
	default:
		return errors.Join(errors.New("the system ended before it was ready"), err)
	}
}

// signups are those that are counted.
const signups = 10

// measure counts for all but the first: what a process does once has been done by then.
func measure(ctx context.Context, at local.Addresses, counters string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	api := at.API() // asked once: what it reads is code of the product, too
	if err := signUp(ctx, api, at.Mailbox, "ada"); err != nil {
		return err
	}
	for i := range signups {
		if err := coverage.ClearCounters(); err != nil {
			return err
		}
		name := fmt.Sprint("grace", i)
		if err := signUp(ctx, api, at.Mailbox, name); err != nil {
			return err
		}
		dir := filepath.Join(counters, name)
		err := errors.Join(os.Mkdir(dir, 0o755), coverage.WriteMetaDir(dir), coverage.WriteCountersDir(dir))
		if err != nil {
			return err
		}
	}
	return nil
}

// signUp returns when the mail has come.
func signUp(ctx context.Context, api, mailbox, name string) error {
	status, _, err := ask(ctx, http.MethodPost, "http://"+api+"/v1/signups",
		`{"email":"`+name+`@example.org","name":"`+name+`"}`)
	if err != nil || status != http.StatusCreated {
		return fmt.Errorf("sign up: status %d: %w", status, err)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		_, mails, err := ask(ctx, http.MethodGet, "http://"+mailbox+"/api/messages", "")
		if err != nil {
			return fmt.Errorf("look for the mail: %w", err)
		}
		if strings.Contains(string(mails), name+"@example.org") {
			return nil
		}
		<-tick.C
	}
}

func ask(ctx context.Context, method, address, body string) (status int, answer []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, answer, errors.Join(err, response.Body.Close())
}
