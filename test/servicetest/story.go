package servicetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/outbox/relay"
)

type step struct {
	At   time.Time
	Text string
}

const (
	selectStory = `
select o.occurred_at as at, format('outbox %s: %s %s v%s (%s)',
    case when exists (select from public.outbox_held h where h.position = o.position) then 'held'
        when ` + relay.IsPublished + ` then 'published' else 'waiting' end,
    o.event_type, o.key, o.version, o.event_id)
from public.outbox o cross join public.outbox_cursor c
union all
select processed_at, format('%s %s: %s (%s) at %s/%s offset %s', consumer, coalesce(metadata->>'outcome', 'applied'),
    event_type, event_id, metadata->>'topic', metadata->>'partition', metadata->>'offset')
from public.inbox
union all
select failed_at, format('%s dead letter %s: %s (%s) %s: %s', consumer, state, event_type, event_id, code, error)
from public.dead_letter`
	unionLeases = `
union all
select coalesce(ended_at, due_at), format('effect %s %s of %s after %s attempts', handler, state, event_id, attempts)
    || coalesce(': ' || error, '')
from public.lease`
	storySteps = 100
	storyLimit = 10 * time.Second
)

// Story returns what happened to the events of all services, a line a step, in the order of time. It has the last
// hundred steps of each service.
func (s *System) Story() string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), storyLimit)
	defer cancel()
	var all []step
	for _, p := range s.parts {
		sql := selectStory
		if p.hasLeases {
			sql += unionLeases
		}
		rows, _ := p.pool.Query(ctx, sql+" order by at desc limit $1", storySteps)
		steps, err := pgx.CollectRows(rows, pgx.RowToStructByPos[step])
		if err != nil {
			return fmt.Sprintf("the story of %s cannot be told: %v", p.name, err)
		}
		for _, found := range steps {
			all = append(all, step{found.At, p.name + " " + found.Text})
		}
	}
	slices.SortStableFunc(all, func(a, b step) int { return a.At.Compare(b.At) })
	var story strings.Builder
	for _, told := range all {
		story.WriteString(told.At.UTC().Format("15:04:05.000 ") + told.Text + "\n")
	}
	return story.String()
}

func (s *System) report() string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), storyLimit)
	defer cancel()
	busy, err := s.look(ctx)
	return fmt.Sprintf("under way: %q %v\n%s", busy, err, s.Story())
}
