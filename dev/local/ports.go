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

// A PortError reports that an address cannot be opened; its text shows how to choose a different one.
type PortError struct {
	Name, Addr, Flag string
	Err              error
}

func (e *PortError) Error() string {
	what := e.Err.Error()
	if errors.Is(e.Err, syscall.EADDRINUSE) {
		what = "is in use"
	}
	option := e.Flag + "=127.0.0.1:0"
	name, value, _ := strings.Cut(option, "=")
	variable := "TWINBOX_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_")) + "=" + value
	return fmt.Sprintf("%s: %s %s; take a free port with --%s (make run ARGS=--%s) or %s",
		e.Name, e.Addr, what, option, option, variable)
}

// Unwrap returns the system's error.
func (e *PortError) Unwrap() error { return e.Err }

// An AddressError reports an address that is malformed, or a second part's too, or open to more than this machine.
type AddressError struct{ Name, Addr, Flag, Detail string }

func (e *AddressError) Error() string {
	return fmt.Sprintf("%s: --%s %q: %s", e.Name, e.Flag, e.Addr, e.Detail)
}

// ExitCode is that of a wrong configuration.
func (*AddressError) ExitCode() int { return 2 }

// checkAddresses reports everything that is wrong with the addresses as they are written, and opens nothing.
func checkAddresses(listeners []Listener) error {
	var problems []error
	for i, l := range listeners {
		detail := config.FormatListen.Check(l.Addr)
		if detail == "" && l.Loopback && !mailbox.IsLoopback(l.Addr) {
			detail = "not a loopback address: others could read what it shows"
		}
		for _, other := range listeners[:i] {
			if detail == "" && config.SameListener(l.Addr, other.Addr) {
				detail = "is also the address of " + other.Name
			}
		}
		if detail != "" {
			problems = append(problems, &AddressError{Name: l.Name, Addr: l.Addr, Flag: l.Flag, Detail: detail})
		}
	}
	return errors.Join(problems...)
}

// checkPorts opens all addresses together and closes them again, and reports each that fails. If a process takes a port
// before its part does, the part's error names the port.
func checkPorts(ctx context.Context, listeners []Listener) error {
	var problems []error
	for _, l := range listeners {
		open, err := new(net.ListenConfig).Listen(ctx, "tcp", l.Addr)
		if err != nil {
			problems = append(problems, &PortError{Name: l.Name, Addr: l.Addr, Flag: l.Flag, Err: err})
			continue
		}
		defer open.Close()
	}
	return errors.Join(problems...)
}
