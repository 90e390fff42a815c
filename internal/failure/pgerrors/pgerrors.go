// Package pgerrors tells package failure what the answers of PostgreSQL and the errors of its client, pgx, mean. To
// import it is enough.
package pgerrors

import (
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"example.com/twinbox/internal/failure"
)

func init() {
	failure.Register(failure.Library{
		Rows:  rows,
		Codes: codesOf,
		Sentinels: map[error]string{
			pgconn.ErrConnClosed:    "postgres_conn_closed",
			pgx.ErrTxClosed:         "postgres_tx_closed",
			pgx.ErrTxCommitRollback: "postgres_commit_rolled_back",
		},
		Connecting: []string{"postgres_connect"},
		Unsent:     unsent,
	})
}

func codesOf(err error) []string {
	switch answer := err.(type) { //nolint:errorlint // failure.Examine unwraps
	case *pgconn.PgError:
		return []string{"sql_" + answer.Code, "sql_" + answer.Code[:min(2, len(answer.Code))]}
	case *pgconn.ConnectError:
		return []string{"postgres_connect"}
	}
	if err.Error() == poolClosed {
		return []string{"postgres_pool_closed"}
	}
	return nil
}

// poolClosed is the error of a pool that is closed. It is puddle's, below pgxpool, and has no other mark.
const poolClosed = "closed pool"

// unsent is asked of a whole chain of which nothing else is known.
func unsent(err error) string {
	says, is := errors.AsType[interface {
		error
		SafeToRetry() bool
	}](err)
	if is && says.SafeToRetry() && says.Error() != connBusy {
		return "postgres_not_sent"
	}
	return ""
}

// connBusy is pgx's message for a connection that another goroutine is using. pgx calls it safe to retry, but its one
// cause is a handler that shares its transaction between goroutines, and that comes again each time.
const connBusy = "conn busy"

// rows are PostgreSQL's error codes (appendix A) by their class of two letters, and the single codes that
// differ from their class. What is missing is Unknown on purpose: 42 for one (syntax, missing table), because during a
// rolling deployment the schema may be about to arrive.
var rows = map[string]failure.Class{
	// a connection could not be made or was lost
	"postgres_connect postgres_conn_closed sql_08": failure.Transient,
	// pgx knows that nothing reached the server
	"postgres_not_sent": failure.Transient,
	// the pool closes when the process stops
	"postgres_pool_closed": failure.Cancelled,
	// the handler ended the transaction itself, or swallowed the error that did
	"postgres_tx_closed postgres_commit_rolled_back sql_25P02": failure.Unknown,
	// client and server do not understand each other, or something between them does not
	"sql_08P01": failure.Unknown,
	// the server rolled back for others' sake: serialization, deadlock, lost commit
	"sql_40": failure.Transient,
	// a deferred constraint refuses the same row again
	"sql_40002": failure.Permanent,
	// another session holds the lock or the object
	"sql_55P03 sql_55006": failure.Transient,
	// connections, memory, disk
	"sql_53": failure.Transient,
	// an operator stops, restarts or recovers the server
	"sql_57": failure.Transient,
	// the statement timeout: one that is always too slow must end
	"sql_57014": failure.Unknown,
	// the server's own files or settings
	"sql_58 sql_F0": failure.Transient,
	// a standby: the primary has just moved
	"sql_25006": failure.Transient,
	// the handler leaves its transaction alone or open for too long
	"sql_25P03 sql_25P04": failure.Unknown,
	// a pooler or a reset lost the prepared statement
	"sql_26": failure.Transient,
	// the snapshot is gone; the next transaction has its own
	"sql_72": failure.Transient,
	// account, password or database are put right by an operator; no event is at fault
	"sql_28 sql_3D": failure.Transient,
	// the value does not fit its type, today or tomorrow
	"sql_22": failure.Permanent,
	// a constraint refuses the row, again each time
	"sql_23 sql_44": failure.Permanent,
	// too large for the server, whenever it comes
	"sql_54": failure.Permanent,
}
