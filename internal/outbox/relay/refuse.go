package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// errRefused ends a page: nothing is published before an operator has confirmed.
var errRefused = errors.New("outbox: publishing waits for a confirmation")

const setRefused = `refused = $3, confirmed = null`

const refusalSQL = `select coalesce(confirmed, ''), coalesce(refused, '') from public.outbox_cursor`

// refuse returns errRefused until an operator has confirmed a text with all reasons not to heal.
func (l *leader) refuse(ctx context.Context, looked []*finding) error {
	e := l.ends
	reasons, err := l.refusals(ctx, looked)
	if err != nil || len(reasons) == 0 && (!e.isRefused || e.hasAllOf(looked)) {
		return err
	}
	var confirmed, refused string
	short, cancel := withStatementTimeout(ctx)
	defer cancel()
	if err := l.conn.QueryRow(short, refusalSQL).Scan(&confirmed, &refused); err != nil {
		return fmt.Errorf("read confirmation: %w", err)
	}
	has := func(text string) bool {
		return !slices.ContainsFunc(reasons, func(reason string) bool { return !strings.Contains(text, reason) })
	}
	if confirmed != "" && has(confirmed) { // a partition without an answer may have the confirmed reason
		return nil
	}
	e.isRefused = true
	if has(refused) {
		return errRefused
	}
	refusal := strings.Join(reasons, " ")
	l.cfg.Log.Error("publishing waits for a confirmation", "refusal", refusal)
	if _, _, err := l.change(ctx, nil, nil, setRefused, refusal); err != nil {
		return fmt.Errorf("refuse: %w", err)
	}
	return errRefused
}

func (e *ends) hasAllOf(looked []*finding) bool {
	for _, p := range e.of {
		if p.state != endReady && !slices.ContainsFunc(looked, func(f *finding) bool { return f.end == p }) {
			return false
		}
	}
	return len(e.failed) == 0
}

// refusals are the reasons not to heal, in a fixed order. Each begins with its code.
func (l *leader) refusals(ctx context.Context, looked []*finding) (texts []string, err error) {
	for _, f := range looked {
		if f.isUnplaced {
			texts = append(texts, fmt.Sprintf("log_unplaceable: topic %s, partition %d ends at %d, and no point stands: "+
				"the broker lost more than this outbox can place, or the topic was created anew. Set the groups' offsets of %[1]s "+
				"to the earliest, then confirm: all rows that are still here are published.", f.topic, f.number, f.to))
		}
		if f.isExpired {
			texts = append(texts, fmt.Sprintf("records_expired: topic %s, partition %d: the records %d to %d expired before "+
				"they were looked up; versions may have been given twice. Set outbox_key from the consumers' inbox_key, then "+
				"confirm.", f.topic, f.number, f.point.End, f.from-1))
		}
	}
	lost := unknownOf(looked)
	if len(lost) == 0 {
		return texts, nil
	}
	missing, err := l.missingVersion(ctx, lost)
	if missing != "" {
		texts = append(texts, missing)
	}
	if oldest := lost[0]; err == nil && time.Since(oldest.origin.Time) > l.cfg.HealWithin {
		texts = append(texts, fmt.Sprintf("events_unknown: records without a row here: %d (first: topic %s, partition %d, "+
			"offset %d, event %s, key %s version %d, %s). Either this database went back, or it is a copy that talks to "+
			"production's Kafka. A copy: stop it. Production: confirm; the events stay valid for consumers (outbox_lost), what "+
			"they did here is gone.", len(lost), oldest.Topic, oldest.origin.Partition, oldest.origin.Offset, oldest.ID,
			oldest.Key, oldest.Version, oldest.origin.Time.UTC().Format(time.RFC3339)))
	}
	return texts, err
}

const missingSQL = `
select topic, key, low, high, case when low > before + 1 then before + 1 else low + n end
from ` + lostKeys + `
left join public.outbox_key k using (topic, key)
cross join lateral (select coalesce(k.version, 0) as before) b
where low > before + 1 or n <= high - low
order by topic, key limit 1`

// missingVersion finds the first key with a version that is neither here nor on the log.
func (l *leader) missingVersion(ctx context.Context, lost []logRecord) (text string, err error) {
	ctx, cancel := withStatementTimeout(ctx)
	defer cancel()
	var topic, key string
	var low, high, missing int64
	err = l.conn.QueryRow(ctx, missingSQL, versionsOf(lost)...).Scan(&topic, &key, &low, &high, &missing)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read versions of keys: %w", err)
	}
	return fmt.Sprintf("versions_missing: the database went back and the broker lost records: key %s of %s has lost "+
		"events of versions %d..%d, but version %d or a later one is neither here nor in the topic. Consumers in strict "+
		"order that have not applied it will park the key. Confirm to go on, then skip it at them (they are listed as "+
		"gaps).", key, topic, low, high, missing), nil
}
