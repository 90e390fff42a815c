package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/kafka"
)

// Service describes one service's topics and consumers.
type Service struct {
	Name string `json:"name"`
	// Source is the source of the service's events. Empty: no record counts as invented.
	Source string `json:"source"`
	// Database is a URL or DSN of a primary. A role that may read all tables is enough.
	Database  string     `json:"database"`
	Topics    []string   `json:"topics"` // that the service writes to
	Consumers []Consumer `json:"consumers"`
	Checks    []Check    `json:"checks"`
	// Pause is the time between two looks at a suspect. It must exceed a lease and a batch.
	Pause time.Duration `json:"pause"`
}

// Consumer is a consumer of the service.
type Consumer struct {
	Name      string   `json:"name"`
	Group     string   `json:"group"`
	Topic     string   `json:"topic"`
	Types     []string `json:"types"`      // of events that it has a handler for
	Versioned bool     `json:"versioned"`  // it keeps the order of the versions
	OnlyWarns bool     `json:"only_warns"` // it only logs an id that comes back with a different payload
}

// Check is a query of the service's own tables. Each row is a finding: event id, key, version (each may be empty or 0)
// and a sentence.
type Check struct {
	Name string `json:"name"`
	SQL  string `json:"sql"`
	Args []any  `json:"args"` // text, numbers and booleans
}

// Config configures [Run].
type Config struct {
	Service
	Kafka kafka.Config
	// Since, if set, leaves out events from before that time, by their own time.
	Since time.Time
	// Progress, if set, is called after every thousand rows and records.
	Progress func(read int64)
	// Suspected, if set, gets the number of suspects before each further look.
	Suspected func(suspects int)

	most int64 // records of a topic; 0: mostRecords
}

const (
	looksAgain  = 2
	maxSuspects = 1000
)

// Run verifies one service and writes nothing. It fails if a side cannot be read, or if a topic has more than
// 10,000,000 records since then.
func Run(ctx context.Context, cfg Config) (*Verdict, error) {
	db, err := connect(ctx, cfg.Database)
	if err != nil {
		return nil, err
	}
	defer db.Close(ctx)
	verdict := &Verdict{
		At: time.Now().UTC(), Since: cfg.Since, Produced: []Produced{}, Consumed: []Consumed{}, Checks: []string{},
		Findings: []Finding{}, Unverifiable: []Unverifiable{},
	}
	for _, c := range cfg.Checks {
		verdict.Checks = append(verdict.Checks, c.Name)
	}
	first := &look{Config: cfg, db: db, verdict: verdict}
	if err := first.run(ctx); err != nil {
		return nil, err
	}
	if first.tooMany > 0 {
		first.cannot("suspects", NotLookedAt, first.tooMany)
	}
	verdict.Produced = slices.DeleteFunc(verdict.Produced, func(p Produced) bool { // no copy was ever written there
		return strings.HasPrefix(p.Topic, event.CopyPrefix) && p == Produced{Topic: p.Topic}
	})
	verdict.Findings = append(verdict.Findings, first.suspects...)
	for again := 0; again < looksAgain && len(verdict.Findings) > 0; again++ {
		if err := first.lookAgain(ctx); err != nil {
			return nil, err
		}
	}
	return verdict, nil
}

// lookAgain keeps the findings that a further look suspects, too.
func (l *look) lookAgain(ctx context.Context) error {
	findings := l.verdict.Findings
	if l.Suspected != nil {
		l.Suspected(len(findings))
	}
	if err := failure.Sleep(ctx, l.Pause); err != nil {
		return fmt.Errorf("wait before the next look: %w", err)
	}
	again := &look{Config: l.Config, db: l.db, verdict: &Verdict{}, among: findings, wanted: map[string]bool{}}
	again.Since = time.Time{} // older records may explain a suspect
	for _, f := range findings {
		again.wanted[f.EventID], again.wanted[f.Key] = true, true
	}
	delete(again.wanted, "") // rows of the inbox have no key
	if err := again.run(ctx); err != nil {
		return err
	}
	for _, u := range again.verdict.Unverifiable {
		l.cannot(u.Subject, u.Reason, u.Events)
	}
	l.verdict.Findings = slices.DeleteFunc(findings, func(f Finding) bool { return !slices.Contains(again.suspects, f) })
	return nil
}

const selectStandby = `select pg_is_in_recovery() from set_config('default_transaction_read_only', 'on', false)`

// The connection is read-only.
func connect(ctx context.Context, dsn string) (*pgx.Conn, error) {
	cfg, err := pgxpool.ParseConfig(dsn) // a service's URL may hold parameters of its pool
	if err != nil {
		return nil, errors.New("read the database's address: not a PostgreSQL URL") // pgx's text may have the password
	}
	cfg.ConnConfig.RuntimeParams["application_name"] = "twinbox verify"
	db, err := pgx.ConnectConfig(ctx, cfg.ConnConfig)
	if err != nil {
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	var isStandby bool
	err = db.QueryRow(ctx, selectStandby).Scan(&isStandby)
	if err == nil && isStandby {
		err = errors.New("the database is a standby, which may lack events that are published: give the primary")
	}
	if err != nil {
		return nil, errors.Join(err, db.Close(ctx))
	}
	return db, nil
}

type look struct {
	Config
	db       *pgx.Conn
	verdict  *Verdict // its counts, and what cannot be verified
	suspects []Finding
	tooMany  int64           // suspects that are not looked at again
	among    []Finding       // those of the look before; nil: there is none
	wanted   map[string]bool // their ids and keys
	read     int64
}

// These are topics that the service wrote to before.
const selectOthers = `
select distinct topic from public.outbox where topic <> all(coalesce($1::text[], '{}')) order by topic`

func (l *look) run(ctx context.Context) error {
	rows, _ := l.db.Query(ctx, selectOthers, l.Topics)
	others, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("read topics: %w", err)
	}
	topics := slices.Concat(l.Topics, others)
	l.verdict.Produced = make([]Produced, len(topics))
	for i, topic := range topics {
		if err := l.compareOutbox(ctx, topic, &l.verdict.Produced[i]); err != nil {
			return err
		}
	}
	l.verdict.Consumed = make([]Consumed, len(l.Consumers))
	for i, c := range l.Consumers {
		if err := l.compareInbox(ctx, c, &l.verdict.Consumed[i]); err != nil {
			return err
		}
	}
	for _, c := range l.Checks {
		sql := "select 'broken', found.* from (" + c.SQL + ") as found"
		if err := l.query(ctx, Rule(c.Name), c.Name, sql, c.Args...); err != nil {
			return err
		}
	}
	return nil
}

// Each row is a suspect.
func (l *look) query(ctx context.Context, rule Rule, subject, sql string, args ...any) error {
	f := Finding{Rule: rule, Subject: subject}
	scan := []any{&f.Kind, &f.EventID, &f.Key, &f.Version, &f.Detail}
	return l.readRows(ctx, fmt.Sprintf("%s of %s", rule, subject), sql, args, scan, func() error {
		l.suspect(f)
		return nil
	})
}

func (l *look) readRows(ctx context.Context, what, sql string, args, scan []any, each func() error) error {
	rows, _ := l.db.Query(ctx, sql, args...)
	if _, err := pgx.ForEachRow(rows, scan, each); err != nil {
		return fmt.Errorf("read %s: %w", what, err)
	}
	return nil
}

func (l *look) judges(f Finding) bool { return l.among == nil || slices.Contains(l.among, f) }

func (l *look) suspect(f Finding) {
	switch {
	case !l.judges(f):
	case len(l.suspects) == maxSuspects:
		l.tooMany++
	default:
		l.suspects = append(l.suspects, f)
	}
}

func (l *look) cannot(subject string, why Reason, n int64) {
	all := &l.verdict.Unverifiable
	i := slices.IndexFunc(*all, func(u Unverifiable) bool { return u.Subject == subject && u.Reason == why })
	if i < 0 {
		i = len(*all)
		*all = append(*all, Unverifiable{Subject: subject, Reason: why})
	}
	(*all)[i].Events += n
}
