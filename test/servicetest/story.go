package servicetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/outbox/relay"
)

type step struct {
	at   time.Time
	text string
}

// Story returns the history of a key or an event in all services, a line a step, in the order of time, with the events
// that followed.
func (s *System) Story(id string) string {
	s.t.Helper()
	story, err := s.story(context.WithoutCancel(s.t.Context()), id)
	if err != nil {
		return fmt.Sprintf("the story of %s cannot be told: %v", id, err)
	}
	return story
}

const maxStory = 100

func (s *System) story(ctx context.Context, id string) (string, error) {
	var steps []step
	ids, known := []string{id}, map[string]bool{}
	for len(ids) > 0 && len(known) < maxStory {
		next := ids[0]
		ids = ids[1:]
		if known[next] {
			continue
		}
		known[next] = true
		for _, p := range s.parts {
			found, follow, err := p.tell(ctx, next, known)
			if err != nil {
				return "", fmt.Errorf("%s: %w", p.name, err)
			}
			steps, ids = append(steps, found...), append(ids, follow...)
		}
	}
	if len(steps) == 0 {
		return "no service knows " + id, nil
	}
	slices.SortStableFunc(steps, func(a, b step) int { return a.at.Compare(b.at) })
	lines := make([]string, len(steps))
	for i, s := range steps {
		lines[i] = s.at.UTC().Format("15:04:05.000 ") + s.text
	}
	return strings.Join(lines, "\n"), nil
}

const (
	selectStory = `
select o.event_id::text, o.occurred_at, format('outbox %s: %s %s v%s (%s)',
    case when exists (select from public.outbox_held h where h.position = o.position) then 'held'
        when ` + relay.IsPublished + ` then 'published' else 'waiting' end,
    o.event_type, o.key, o.version, o.event_id)
from public.outbox o cross join public.outbox_cursor c
where $1::text in (o.event_id::text, o.key, o.headers ->> '` + event.HeaderCausationID + `')
union all
select $1, processed_at, format('%s %s: %s (%s) at %s/%s offset %s', consumer,
    coalesce(metadata->>'outcome', 'applied'), event_type, event_id, metadata->>'topic', metadata->>'partition',
    metadata->>'offset')
from public.inbox where event_id = $1
union all
select $1, failed_at, format('%s dead letter %s: %s %s: %s', consumer, state, event_type, code, error)
from public.dead_letter where event_id = $1`
	unionLeases = `
union all
select $1::text, coalesce(ended_at, due_at), format('effect %s %s after %s attempts', handler, state, attempts)
    || coalesce(': ' || error, '')
from public.lease where event_id = $1`
)

func (p *part) tell(ctx context.Context, id string, known map[string]bool) (steps []step, follow []string, err error) {
	sql := selectStory
	if p.hasLeases {
		sql += unionLeases
	}
	rows, _ := p.pool.Query(ctx, sql+" order by 2, 1", id)
	var e string
	var s step
	_, err = pgx.ForEachRow(rows, []any{&e, &s.at, &s.text}, func() error {
		switch {
		case e == id:
			steps = append(steps, step{s.at, p.name + " " + s.text})
		case !known[e]:
			follow = append(follow, e)
		}
		return nil
	})
	return steps, follow, err
}

const (
	selectLastKeys = `
select key from public.outbox group by key order by max(position) desc limit 5`
	reportLimit = 10 * time.Second
)

func (s *System) report() string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), reportLimit)
	defer cancel()
	var report strings.Builder
	busy, err := s.look(ctx)
	fmt.Fprintf(&report, "under way: %q %v\n", busy, err)
	for _, p := range s.parts {
		rows, _ := p.pool.Query(ctx, selectLastKeys)
		keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			fmt.Fprintf(&report, "%s: %v\n", p.name, err)
		}
		for _, key := range keys {
			fmt.Fprintf(&report, "%s of %s:\n  %s\n", key, p.name, strings.ReplaceAll(s.Story(key), "\n", "\n  "))
		}
	}
	return report.String()
}
