// Package failure sorts errors by what to do about them: the one table that consumers, relay and mail sender share.
package failure

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/IBM/sarama"
	"github.com/jackc/pgx/v5/pgconn"
)

// Class says what to do about an error.
type Class string

const (
	// Permanent errors stay what they are however often one tries: bad bytes, a broken rule, a refused row.
	Permanent Class = "permanent"
	// Transient errors are the surroundings' fault and end with them: wait and try again, for as long as it takes.
	// Nothing is ever dead-lettered for one.
	Transient Class = "transient"
	// Unknown errors may be either: try a bounded number of times, then give up on the event.
	Unknown Class = "unknown"
	// Cancelled is no verdict on the event at all: the process is stopping or has lost the partition.
	Cancelled Class = "cancelled"
)

// permanentError marks an error that its author knows to be final.
type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// AsPermanent marks err as final: whoever handles it will not try again. It returns nil for nil.
func AsPermanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

// transientError marks an error that its author knows to pass.
type transientError struct{ err error }

func (e *transientError) Error() string { return e.err.Error() }
func (e *transientError) Unwrap() error { return e.err }

// AsTransient marks err as one that passes by itself: whoever handles it tries again. It returns nil for nil.
func AsTransient(err error) error {
	if err == nil {
		return nil
	}
	return &transientError{err}
}

// Classify sorts err. An error that no row knows is [Unknown]; nil is not an error and must not be passed.
//
// A deadline is not a cancellation: it is Unknown, because an event whose handler always runs out of time must reach
// the dead letters in the end.
func Classify(err error) Class {
	var permanent *permanentError
	var transient *transientError
	var pgErr *pgconn.PgError
	var sayer interface{ Permanent() bool }
	switch {
	case errors.As(err, &permanent):
		return Permanent
	case errors.As(err, &transient):
		return Transient
	case errors.Is(err, context.Canceled):
		return Cancelled
	case errors.As(err, &pgErr):
		return classifySQLState(pgErr.Code)
	case errors.As(err, &sayer) && sayer.Permanent():
		return Permanent
	case isConnection(err), isBroker(err):
		return Transient
	}
	return Unknown
}

// classifySQLState knows the classes of PostgreSQL's appendix A. 42 (syntax, missing table) is Unknown and not
// Permanent: during a rolling deployment the schema may be about to arrive.
func classifySQLState(code string) Class {
	switch code {
	case "40001", "40P01", "55P03": // serialization failure, deadlock, lock not available
		return Transient
	case "57014": // query cancelled: by a statement timeout, since a cancelled context never gets this far
		return Unknown
	}
	switch code[:min(2, len(code))] {
	case "08", "53", "57", "58": // connection, resources, operator intervention (shutdown, crash), system error
		return Transient
	case "22", "23": // data, integrity constraint: the same row will be refused again
		return Permanent
	}
	return Unknown
}

func isConnection(err error) bool {
	var netErr net.Error
	var connectErr *pgconn.ConnectError
	return errors.As(err, &connectErr) || pgconn.SafeToRetry(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EPIPE) ||
		errors.As(err, &netErr) && !errors.Is(err, context.DeadlineExceeded)
}

func isBroker(err error) bool {
	return errors.Is(err, sarama.ErrOutOfBrokers) || errors.Is(err, sarama.ErrNotConnected) ||
		errors.Is(err, sarama.ErrBrokerNotAvailable) || errors.Is(err, sarama.ErrRequestTimedOut) ||
		errors.Is(err, sarama.ErrNotEnoughReplicas) || errors.Is(err, sarama.ErrLeaderNotAvailable) ||
		errors.Is(err, sarama.ErrNotLeaderForPartition) || errors.Is(err, sarama.ErrNetworkException)
}
