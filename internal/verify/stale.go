package verify

import (
	"context"
	"fmt"
	"slices"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event"
)

// keyRecords is what the topic holds of one key, up to the committed offsets.
type keyRecords struct {
	key     string
	records []fact
	version int64 // that the key has reached in the inbox
}

// judgeMissing is V4 of an ordered consumer's records that have neither row nor dead letter: they are stale or lost. It
// reads the topic once more, for the keys of these records alone.
func (c *consumed) judgeMissing(ctx context.Context) error {
	if len(*c.missing) == 0 {
		return nil
	}
	keys := map[uint64]*keyRecords{}
	for _, r := range *c.missing {
		keys[r.key] = &keyRecords{}
	}
	if err := c.readKeys(ctx, keys); err != nil {
		return err
	}
	if err := c.readVersions(ctx, keys); err != nil {
		return err
	}
	for _, r := range *c.missing {
		switch k := keys[r.key]; {
		case k.isStale(r):
			c.counts.Handled++
		case c.parts[r.part].oldest > 0 && !slices.ContainsFunc(k.records, r.follows):
			c.cannot(TopicForgot) // a record that made it stale may have been there
		default:
			c.suspect("V4", Lost, r)
		}
	}
	return nil
}

func (c *consumed) readKeys(ctx context.Context, keys map[uint64]*keyRecords) error {
	oldest, _, err := c.endsAgain(ctx, c.Topic, c.parts)
	if err != nil {
		return err
	}
	for i, from := range oldest {
		c.parts[i].oldest = from
		to := min(c.parts[i].committed, c.parts[i].end)
		if from >= to {
			continue
		}
		_, err := c.cfg.Log.Scan(ctx, c.Topic, int32(i), from, to, func(m *message.Message) {
			c.step()
			o, _ := event.OriginFrom(m.Context())
			r := c.recordOf(m, o)
			if k := keys[r.key]; k != nil {
				k.key, k.records = m.Metadata[event.KeyMetadata], append(k.records, r)
			}
		})
		if err != nil {
			return fmt.Errorf("read %s/%d: %w", c.Topic, i, err)
		}
	}
	return nil
}

const selectVersions = `select key, version from public.inbox_key where consumer = $1 and key = any($2)`

func (c *consumed) readVersions(ctx context.Context, keys map[uint64]*keyRecords) error {
	var names []string
	for _, k := range keys {
		names = append(names, k.key)
	}
	rows, _ := c.cfg.DB.Query(ctx, selectVersions, c.Name, names)
	var name string
	var version int64
	_, err := pgx.ForEachRow(rows, []any{&name, &version}, func() error {
		if k := keys[hashOf(c.Topic, name)]; k != nil {
			k.version = version
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read keys: %w", err)
	}
	return nil
}

// isStale reports whether the inbox skipped the record: its key had reached its version, by another event that came
// before. The order of two topic-partitions is not known.
func (k *keyRecords) isStale(r fact) bool {
	return r.version <= k.version && slices.ContainsFunc(k.records, func(e fact) bool {
		return e.id != r.id && e.version >= r.version && (e.part != r.part || r.follows(e))
	})
}

// follows reports whether the record comes after the other one in their topic-partition.
func (f fact) follows(other fact) bool { return f.part == other.part && f.offset > other.offset }

const selectOddlyParked = `
select key, coalesce(k.parked_from, 0), coalesce(l.version, 0),
    l.version is null or coalesce(k.parked_from < l.version, false)
from (select key, parked_from from public.inbox_key where consumer = $1 and parked_from is not null) k
full join (
    select convert_from(key_start, 'UTF8') as key, min(version) as version from public.dead_letter
    where consumer = $1 and state = 'waiting' and holds group by 1
) l using (key)
where k.parked_from is distinct from l.version
limit 1000`

// judgeParked is V7: the key of a dead letter that holds it parks later events from its version on, and no other key
// does.
func (c *consumed) judgeParked(ctx context.Context) error {
	rows, _ := c.cfg.DB.Query(ctx, selectOddlyParked, c.Name)
	var key string
	var parkedFrom, version int64
	var isGone bool
	_, err := pgx.ForEachRow(rows, []any{&key, &parkedFrom, &version, &isGone}, func() error {
		f := fact{key: hashOf(c.Topic, key), version: version}
		kind := Reordered
		if isGone {
			f.version, kind = parkedFrom, Lost
		}
		c.label(f.key, key)
		c.suspect("V7", kind, f)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read parked keys: %w", err)
	}
	return nil
}
