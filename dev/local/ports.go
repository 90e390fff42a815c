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

// A PortError says that an address cannot be listened on, and how to choose another.
type PortError struct {
	Name, Addr, Flag string
	ByMake           bool // the flag is given as make's variable ARGS
	Err              error
}

func (e *PortError) Error() string {
	what := e.Err.Error()
	if errors.Is(e.Err, syscall.EADDRINUSE) {
		what = "is in use"
	}
	if e.ByMake {
		return fmt.Sprintf("%s: %s %s; choose another: make run ARGS=--%s=127.0.0.1:0 (a free port), or %s",
			e.Name, e.Addr, what, e.Flag, variable(e.Flag))
	}
	return fmt.Sprintf("%s: %s %s; choose another with --%s or %s", e.Name, e.Addr, what, flagOf(e.Flag), variable(e.Flag))
}

// Unwrap returns the system's error.
func (e *PortError) Unwrap() error { return e.Err }

// variable is the environment variable of a flag.
func variable(flag string) string {
	name, of, one := strings.Cut(flag, "=")
	name = "TWINBOX_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	if one { // of several: order=127.0.0.1:0
		name += "=" + of + "=127.0.0.1:0"
	}
	return name
}

// flagOf is a flag as it is typed. One that holds addresses by names is no help without its value.
func flagOf(flag string) string {
	if strings.Contains(flag, "=") {
		return flag + "=127.0.0.1:0"
	}
	return flag
}

// An AddressError says that an address is none, or is another part's too, or is open to more than this machine.
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

// checkPorts opens every address once, all at a time so that one given twice is found too, and reports all that fail.
// Another process may take a port between this and its use; the part that then fails names the port as well.
func checkPorts(ctx context.Context, listeners []Listener, byMake bool) error {
	var problems []error
	for _, l := range listeners {
		open, err := new(net.ListenConfig).Listen(ctx, "tcp", l.Addr)
		if err != nil {
			problems = append(problems, &PortError{Name: l.Name, Addr: l.Addr, Flag: l.Flag, ByMake: byMake, Err: err})
			continue
		}
		defer open.Close()
	}
	return errors.Join(problems...)
}
