package servicetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	deadletters "example.com/twinbox/engine/deadletter/operate"
	"example.com/twinbox/engine/inbox"
	"example.com/twinbox/engine/inbox/replay"
	"example.com/twinbox/engine/outbox/operate"
)

// step is one line of a story.
type step struct {
	at   time.Time
	text string
}

// Story is what became of a key or of an event in all services: the outbox rows, what each consumer decided, the dead
// letters, the effects owed, and the same of the events that followed. A line a step, in the order of time.
func (s *System) Story(id string) string {
	s.t.Helper()
	story, err := s.story(context.WithoutCancel(s.t.Context()), id)
	if err != nil {
		return fmt.Sprintf("the story of %s cannot be told: %v", id, err)
	}
	return story
}

// maxStory bounds the events of a story.
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

// tell says what the service knows of an id, and which events to go on with.
func (p *part) tell(ctx context.Context, id string, told map[string]bool) (steps []step, follow []string, err error) {
	byID, err := operate.FindEvent(ctx, p.pool, id, operate.Hint{})
	if err != nil && !errors.Is(err, operate.ErrNeedsHint) {
		return nil, nil, err
	}
	byKey, err := operate.EventsOfKey(ctx, p.pool, id)
	if err != nil {
		return nil, nil, err
	}
	caused, err := operate.CausedBy(ctx, p.pool, id)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range byID {
		steps = append(steps, step{e.OccurredAt, fmt.Sprintf("%s outbox %s: %s %s v%d (%s)", p.name, e.State, e.Type,
			e.Key, e.Version, e.EventID)})
	}
	for _, e := range slices.Concat(byKey, caused) {
		if !told[e.EventID] {
			follow = append(follow, e.EventID)
		}
	}
	more, err := p.tellConsumers(ctx, id)
	return append(steps, more...), follow, err
}

const selectLeases = `
select coalesce(ended_at, due_at), format('effect %s %s after %s attempts', handler, state, attempts)
    || coalesce(': ' || error, '')
from public.lease where event_id = $1 order by handler`

// tellConsumers says what the consumers made of an event, and what effects are owed for it.
func (p *part) tellConsumers(ctx context.Context, id string) (steps []step, err error) {
	var consumers []string
	p.node.EachConsumer(func(name string, _ *replay.Replayer) { consumers = append(consumers, name) })
	seen, err := inbox.Lookup(ctx, p.pool, consumers, id)
	if err != nil {
		return nil, err
	}
	for _, r := range seen {
		steps = append(steps, step{r.ProcessedAt, fmt.Sprintf("%s %s %s: %s (%s) at %s/%d offset %d", p.name, r.Consumer,
			r.Outcome, r.EventType, r.EventID, r.Topic, r.Partition, r.Offset)})
	}
	for _, name := range consumers {
		letters, err := deadletters.NewStore(p.pool).OfEvent(ctx, name, id)
		if err != nil {
			return nil, err
		}
		for _, l := range letters {
			steps = append(steps, step{l.FailedAt, fmt.Sprintf("%s %s dead letter %s: %s %s: %s", p.name, name, l.State,
				l.EventType, l.Code, l.Error)})
		}
	}
	var has bool
	if err := p.pool.QueryRow(ctx, selectHasLeases).Scan(&has); err != nil || !has {
		return steps, err
	}
	rows, _ := p.pool.Query(ctx, selectLeases, id)
	var s step
	_, err = pgx.ForEachRow(rows, []any{&s.at, &s.text}, func() error {
		steps = append(steps, step{s.at, p.name + " " + s.text})
		return nil
	})
	return steps, err
}

const (
	selectLastKeys = `
select key from public.outbox group by key order by max(position) desc limit 5`
	reportLimit = 10 * time.Second
)

// report is what a test that failed shows of the services.
func (s *System) report() string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), reportLimit)
	defer cancel()
	var report strings.Builder
	_, busy, err := s.look(ctx)
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
		fmt.Fprintf(&report, "%s warned of:\n%s", p.name, p.warnings)
	}
	return report.String()
}
