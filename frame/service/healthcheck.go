package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Healthcheck asks the admin listener at addr whether the service is ready, prints the checks and returns an error
// when it is not. It is the health check of containers whose image holds nothing but the service.
func Healthcheck(ctx context.Context, addr string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+dialable(addr)+"/readyz", http.NoBody)
	if err != nil {
		return fmt.Errorf("ask %s: %w", addr, err)
	}
	// Not the default client: a proxy in the environment must not be asked about this process.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("ask admin listener: %w", err)
	}
	defer response.Body.Close()
	var report Readiness
	if err := json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(&report); err != nil {
		return fmt.Errorf("read readiness: status %d: %w", response.StatusCode, err)
	}
	_, _ = fmt.Fprintln(out, report.Status)
	for _, c := range report.Checks {
		_, _ = fmt.Fprintf(out, "  %-8s %s %s\n", c.Status, c.Name, c.Reason)
	}
	if response.StatusCode != http.StatusOK {
		return errors.New("not ready")
	}
	return nil
}

// dialable turns an address to listen on into one to dial. Numbers rather than "localhost": a bare image need not be
// able to resolve that.
func dialable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	switch host {
	case "", "0.0.0.0":
		host = "127.0.0.1"
	case "::":
		host = "::1"
	}
	return net.JoinHostPort(host, port)
}
