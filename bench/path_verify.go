package main

import (
	"context"
	"fmt"
)

// fingerprintSQL describes a column of ids: how many there are, how many different ones, and which.
const fingerprintSQL = `
select count(*), count(distinct %[1]s), coalesce(sum(hashtextextended(%[1]s::text, 0)::numeric), 0)::text from %[2]s`

// ids is what fingerprintSQL says.
type ids struct {
	rows, different int
	sum             string
}

func (d *database) fingerprint(ctx context.Context, column, table string) (f ids, err error) {
	err = d.QueryRow(ctx, fmt.Sprintf(fingerprintSQL, column, table)).Scan(&f.rows, &f.different, &f.sum)
	if err != nil {
		return f, fmt.Errorf("count %s: %w", table, err)
	}
	return f, nil
}

// verifyEffects compares what both lines have to do, in tables that no service sees both of: exactly the users of the
// one have a contact and a mail in the other, one each, and each mail belongs to another event.
func verifyEffects(ctx context.Context, cfg lineConfig) error {
	users, err := cfg.customer.fingerprint(ctx, "id", "users")
	if err != nil {
		return err
	}
	for column, table := range map[string]string{"user_id": "contact", "mail.user_id": "mail"} {
		found, err := cfg.notification.fingerprint(ctx, column, table)
		if err != nil {
			return err
		}
		if found != users {
			return fmt.Errorf("%d signups, but %d rows of %d users in %s", users.rows, found.rows, found.different, table)
		}
	}
	events, err := cfg.notification.fingerprint(ctx, "event_id", "mail")
	if err == nil && events.different != users.rows {
		err = fmt.Errorf("%d signups, but mails of %d events", users.rows, events.different)
	}
	return err
}
