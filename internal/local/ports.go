package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
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
	return fmt.Sprintf("%s: %s %s; choose another with --%s or %s", e.Name, e.Addr, what, e.Flag, variable(e.Flag))
}

// Unwrap returns the system's error.
func (e *PortError) Unwrap() error { return e.Err }

// variable is the environment variable of a flag.
func variable(flag string) string {
	return "TWINBOX_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// checkPorts opens every address once, all at a time so that one given twice is found too, and reports all that fail.
// Whoever takes a port between this and its use gets it; the part that then fails names the port as well.
func checkPorts(ctx context.Context, listeners []listener, byMake bool) error {
	var problems []error
	for _, l := range listeners {
		open, err := new(net.ListenConfig).Listen(ctx, "tcp", *l.addr)
		if err != nil {
			problems = append(problems, &PortError{Name: l.name, Addr: *l.addr, Flag: l.flag, ByMake: byMake, Err: err})
			continue
		}
		defer open.Close()
	}
	return errors.Join(problems...)
}
