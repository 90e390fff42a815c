package eventing

import (
	"context"

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
