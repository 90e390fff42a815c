package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"example.com/twinbox/internal/failure"
)

type Migration struct {
	// URL is the database's, for the owner of its tables.
	URL string
	// Sets in the order of application.
	Sets []Set
	// Role is the serving role, which gets its rights on all objects. Empty: the owner serves.
	Role string
	// Report gets a line each time the run has to wait. Optional.
	Report func(line string)
}

// Apply is [Migration.Run] without a serving role.
func Apply(ctx context.Context, url string, sets ...Set) ([]string, error) {
	return Migration{URL: url, Sets: sets}.Run(ctx)
}

// Run brings the database up to the sets, gives the serving role its rights, and returns the files that ran (SET/FILE),
// also with an error. Each file has a transaction, unless it asks for none; a failed one leaves those before it
// applied.
//
// Of several processes one works and the others wait. A statement waits one second for a table's lock, so that traffic
// does not queue up behind it. Then the file is rolled back and tried again, for ten minutes. A file without a
// transaction sets its own lock_timeout. No error repeats the URL.
func (m Migration) Run(ctx context.Context) (applied []string, err error) {
	db, err := m.open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for _, set := range m.Sets {
		done, err := m.apply(ctx, db, set)
		applied = append(applied, done...)
		if err != nil {
			return applied, fmt.Errorf("migrate %s: %w", set.Name, err)
		}
	}
	if m.Role == "" {
		return applied, nil
	}
	return applied, grant(ctx, db, m.Role)
}

// open returns a database of one session, which holds the lock.
func (m Migration) open() (*sql.DB, error) {
	pool, err := pgxpool.ParseConfig(m.URL) // which may hold parameters of a service's pool
	if err != nil {
		// Its own text repeats the URL.
		return nil, errors.New("read database url: not a PostgreSQL URL or key=value list")
	}
	pool.ConnConfig.RuntimeParams["lock_timeout"] = fmt.Sprint(lockTimeout.Milliseconds())
	db := stdlib.OpenDB(*pool.ConnConfig, stdlib.OptionAfterConnect(m.lock))
	db.SetMaxOpenConns(1)
	return db, nil
}

const (
	lockID      int64 = 0x7477696e626f78
	lockTimeout       = time.Second
	reportAfter       = time.Second
	// retryPause gives the traffic that queued behind a statement twice the time that it waited.
	retryPause    = 2 * time.Second
	retryPatience = 10 * time.Minute
)

// lock asks again and again: a session that waits in a statement holds a snapshot, and a "create index concurrently" of
// the process that has the lock would wait for that snapshot for ever.
func (m Migration) lock(ctx context.Context, conn *pgx.Conn) (err error) {
	defer func() {
		if err != nil {
			_ = conn.Close(context.WithoutCancel(ctx)) // the library leaves it open
		}
	}()
	began, reported := time.Now(), false
	for pauses := (failure.Backoff{Min: 20 * time.Millisecond, Max: time.Second}); ; {
		var locked bool
		if err := conn.QueryRow(ctx, `select pg_try_advisory_lock($1)`, lockID).Scan(&locked); err != nil || locked {
			return err
		}
		if !reported && time.Since(began) > reportAfter {
			m.report("another migrate works on this database: waiting for its end")
			reported = true
		}
		if err := failure.Sleep(ctx, pauses.Next()); err != nil {
			return fmt.Errorf("wait for another migrate: %w", err)
		}
	}
}

func (m Migration) report(format string, args ...any) {
	if m.Report != nil {
		m.Report(fmt.Sprintf(format, args...))
	}
}

// apply runs the files of a set that the database lacks.
func (m Migration) apply(ctx context.Context, db *sql.DB, set Set) (applied []string, err error) {
	provider, err := set.provider(db)
	if err != nil {
		return nil, err
	}
	if err := recordFiles(ctx, db, set, provider); err != nil {
		return nil, err
	}
	for began := time.Now(); ; {
		results, err := provider.Up(ctx)
		partial, failed := errors.AsType[*goose.PartialError](err)
		if failed {
			results = partial.Applied
		}
		for _, result := range results {
			applied = append(applied, set.Name+"/"+path.Base(result.Source.Path))
		}
		if !failed || !isLockTimeout(err) || time.Since(began) > retryPatience {
			return applied, err
		}
		m.report("%s/%s waits for a lock that another transaction holds: the next attempt is in %s",
			set.Name, path.Base(partial.Failed.Source.Path), retryPause)
		if ended := failure.Sleep(ctx, retryPause); ended != nil {
			return applied, fmt.Errorf("%w: %w", ended, err)
		}
	}
}

func isLockTimeout(err error) bool {
	refused, is := errors.AsType[*pgconn.PgError](err)
	return is && refused.Code == "55P03"
}
