package notification

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/verify"
)

// A row without an outcome is from before outcomes were stored, and may have been skipped. A mail that was purged was
// sent long after its sign-up was taken in.
const selectUnmailed = `
select i.event_id
from public.inbox i
where i.consumer = $1 and i.event_type = $2 and i.metadata ->> 'outcome' = 'applied'
    and ($5::float8 = 0 or i.processed_at > clock_timestamp() - make_interval(secs => $5))
    and not exists (select from mail m join public.lease l on l.event_id = m.event_id and l.handler = $3
        where m.event_id = i.event_id and m.template = $4)
limit 1000`

// checkMails finds sign-ups that were taken in and have no mail, or one that no sender knows of. With a retention of 0
// mails are kept.
func checkMails(retention time.Duration) func(context.Context, pgx.Tx) ([]verify.Finding, error) {
	return func(ctx context.Context, tx pgx.Tx) ([]verify.Finding, error) {
		rows, _ := tx.Query(ctx, selectUnmailed, usersConsumer, contract.UserRegistered.Type, handlerVerification,
			templateVerification, retention.Seconds())
		found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (verify.Finding, error) {
			unmailed := verify.Finding{Detail: "the sign-up has no mail that is sent or will be"}
			err := row.Scan(&unmailed.EventID)
			return unmailed, err
		})
		if err != nil {
			return nil, fmt.Errorf("look for mails: %w", err)
		}
		return found, nil
	}
}

// contacts move with their users' events.
var contacts = verify.Projection{Table: "contact", Key: "user_id", Consumer: usersConsumer}
