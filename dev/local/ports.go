package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"example.com/twinbox/dev/local/mailbox"
	"example.com/twinbox/internal/config"
)

func checkAddresses(listeners []Listener) error {
	var problems []error
	for _, l := range listeners {
		detail := config.FormatListen.Check(l.Addr)
		if detail == "" && l.Loopback && !mailbox.IsLoopback(l.Addr) {
			detail = "not a loopback address: others could read what it shows"
		}
		if detail != "" {
			problems = append(problems, UsageError(fmt.Sprintf("%s: --%s %q: %s", l.Name, l.Flag, l.Addr, detail)))
		}
	}
	return errors.Join(problems...)
}

// checkPorts opens all addresses together and closes them. If a process takes a port later, the part's error names it.
func checkPorts(ctx context.Context, listeners []Listener) error {
	var problems []error
	for _, l := range listeners {
		open, err := new(net.ListenConfig).Listen(ctx, "tcp", l.Addr)
		if err == nil {
			defer open.Close()
			continue
		}
		if errors.Is(err, syscall.EADDRINUSE) {
			err = errors.New("is in use")
		}
		variable := strings.ToUpper(strings.ReplaceAll(l.Flag, "-", "_"))
		option := "--" + l.Flag + "=" + freePort
		problems = append(problems, fmt.Errorf("%s: %s %w; take a free port with %s (make run ARGS=%s) or TWINBOX_%s=%s",
			l.Name, l.Addr, err, option, option, variable, freePort))
	}
	return errors.Join(problems...)
}
