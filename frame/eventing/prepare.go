package eventing

import (
	"context"
	"fmt"
	"io"
	"time"

	"example.com/twinbox/engine/kafka"
	"example.com/twinbox/engine/kafka/admin"
	"example.com/twinbox/migrations"
)

// Migrate brings the service's database to the schema of this build and says on out what it applied, also when it
// fails on the way: what was applied stays. As the owner of the tables it gives the role that serves its rights.
func (c Config) Migrate(ctx context.Context, out io.Writer, sets ...migrations.Set) error {
	owner := c.DatabaseURL
	if c.MigrateURL != "" {
		owner = c.MigrateURL
	}
	applied, err := migrations.Apply(ctx, owner.Reveal(), sets...)
	for _, one := range applied {
		_, _ = fmt.Fprintf(out, "applied %s/%s\n", one.Set, one.File)
	}
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if _, err = fmt.Fprintf(out, "%d migrations applied, the schema is up to date\n", len(applied)); err != nil {
		return err
	}
	if role, other := c.servingRole(); other {
		if err := migrations.Grant(ctx, owner.Reveal(), role); err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
		_, err = fmt.Fprintf(out, "%s may serve\n", role)
	}
	return err
}

// EnsureTopics creates the topics that are not there and says on out which there are, as the broker has them. One that
// has another number of partitions or keeps its records for another time than the settings ask for stays as it is.
func (c Config) EnsureTopics(ctx context.Context, out io.Writer, service string, topics []kafka.Topic) error {
	if err := admin.EnsureTopics(ctx, c.Client(service), topics...); err != nil {
		return fmt.Errorf("ensure topics: %w", err)
	}
	names := make([]string, len(topics))
	for i, topic := range topics {
		names[i] = topic.Name
	}
	found, err := admin.PartitionCounts(ctx, c.Client(service), names...)
	if err != nil {
		return fmt.Errorf("ensure topics: %w", err)
	}
	kept, err := admin.ReadTopicSettings(ctx, c.Client(service), names...)
	if err != nil {
		return fmt.Errorf("ensure topics: %w", err)
	}
	for _, topic := range topics {
		is := fmt.Sprintf("%d partitions, kept %s", found[topic.Name], keptFor(kept[topic.Name].Retention))
		set := fmt.Sprintf("%d partitions, kept %s", topic.Partitions, keptFor(topic.Retention))
		if is != set {
			is += "; it stays as it is, and is not given " + set
		}
		_, _ = fmt.Fprintf(out, "%s: %s\n", topic.Name, is)
	}
	return nil
}

func keptFor(retention time.Duration) string {
	if retention < 0 {
		return "for ever"
	}
	return retention.String()
}
