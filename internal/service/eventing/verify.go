package eventing

import (
	"context"
	"fmt"

	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/verify"
)

// Verified describes the service to package verify. It needs no server. A Pause exceeds the time to record a batch or
// handle an event.
func (i *Instance) Verified(ctx context.Context) (s verify.Service, err error) {
	declared, err := i.Declared(ctx)
	if err != nil {
		return s, err
	}
	cfg := i.Shared()
	s = verify.Service{
		Name: declared.Service, Source: declared.Source, Database: cfg.DatabaseURL.Reveal(), Topics: namesOf(declared.Topics),
		Pause: max(cfg.Outbox.Lease, cfg.Inbox.HandlerTimeout) + cfg.Kafka.PublishTimeout,
	}
	for _, c := range declared.Consumers {
		s.Consumers = append(s.Consumers, verify.Consumer{
			Name: c.Name, Group: cfg.Group(c.Name), Topic: c.Topic, Types: c.types(),
			Versioned: c.Order == inbox.Strict || c.Order == inbox.Latest,
			OnlyWarns: inbox.ConflictMode(cfg.Inbox.OnConflict) == inbox.ConflictWarn,
		})
	}
	for _, c := range declared.Checks {
		s.Checks = append(s.Checks, verify.Check{Name: c.Name, SQL: c.SQL, Args: c.Args})
	}
	return s, nil
}

const selectOddVersions = `
select '' as event_id, coalesce(w.key, p.%[2]s::text) as key, coalesce(p.version, 0) as version,
    format('the row in %[1]s is at version %%s, its events at %%s', coalesce(p.version, 0), coalesce(w.version, 0))
        as detail
from (select key, version from public.inbox_key where consumer = $1 and version > 0) w
full join %[1]s p on p.%[2]s::text = w.key
where p.version is distinct from w.version
    and not exists (select from public.dead_letter d where d.consumer = $1 and d.state = 'discarded'
        and d.key_start = convert_to(coalesce(w.key, p.%[2]s::text), 'UTF8'))
limit 1000`

// CheckProjection finds rows whose column "version" differs from the last version applied to their key. Discarded dead
// letters move only the inbox's version.
func CheckProjection(name, table, keyColumn, consumer string) Check {
	return Check{Name: name, SQL: fmt.Sprintf(selectOddVersions, table, keyColumn), Args: []any{consumer}}
}
