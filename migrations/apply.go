package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"path"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// Applied is one migration that a call of [Apply] ran.
type Applied struct {
	Set      string
	Version  int64
	File     string
	Duration time.Duration
}

// Apply brings the database up to the sets, in their order, and returns what it ran, in order, also beside an error.
// Each file runs in one transaction unless it says otherwise; a failed one leaves those before it applied.
//
// It may be called at any time by any number of processes: one works, the others wait until their context ends and
// then find nothing to do. A database that is ahead of this binary is left alone: see [Check].
//
// No error repeats the dsn, which may hold a password.
func Apply(ctx context.Context, dsn string, sets ...Set) (applied []Applied, err error) {
	cfg, err := parse(dsn)
	if err != nil {
		return nil, err
	}
	db := stdlib.OpenDB(*cfg)
	defer func() { err = errors.Join(err, db.Close()) }()
	for _, set := range sets {
		done, err := applySet(ctx, db, set)
		applied = append(applied, done...)
		if err != nil {
			return applied, fmt.Errorf("migrate %s: %w", set.Name, err)
		}
	}
	return applied, nil
}

// ErrInvalidDSN is returned by [Apply] and [Grant] for a database URL that cannot be read. It does not repeat it.
var ErrInvalidDSN = errors.New("read database url: not a PostgreSQL URL or key=value list")

func parse(dsn string) (*pgx.ConnConfig, error) {
	pool, err := pgxpool.ParseConfig(dsn) // a service's pool reads the same URL, which may hold parameters for it alone
	if err != nil {
		return nil, ErrInvalidDSN // its own text repeats the dsn
	}
	return pool.ConnConfig, nil
}

const (
	// lockID is the advisory lock of migrations; any number that no other user of the database takes.
	lockID = 0x7477696e626f78
	// lockSeconds and lockAttempts are how often a process asks for it: until its context ends. It asks instead of waiting
	// inside the server: a session that waits for the lock in a statement holds a snapshot, and a "create index
	// concurrently" of the one that has the lock would wait for that snapshot, for ever.
	lockSeconds, lockAttempts = 1, math.MaxInt64
)

func applySet(ctx context.Context, db *sql.DB, set Set) (applied []Applied, err error) {
	locker, err := lock.NewPostgresSessionLocker(
		lock.WithLockID(lockID), lock.WithLockTimeout(lockSeconds, lockAttempts))
	if err != nil {
		return nil, err
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, set.FS, goose.WithSessionLocker(locker),
		goose.WithTableName(set.table()), goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if errors.Is(err, goose.ErrNoMigrations) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := recordBreaking(ctx, db, set); err != nil {
		return nil, err
	}
	results, err := provider.Up(ctx)
	if partial, ok := errors.AsType[*goose.PartialError](err); ok {
		results = partial.Applied
	}
	for _, result := range results {
		applied = append(applied, Applied{
			Set: set.Name, Version: result.Source.Version, File: path.Base(result.Source.Path), Duration: result.Duration,
		})
	}
	return applied, err
}
