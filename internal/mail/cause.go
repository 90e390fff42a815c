package mail

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/circuit"
)

const countUnsettled = `
select count(*) filter (where state not in ('uncertain', 'failed')),
    count(*) filter (where state = 'uncertain'), min(ended_at) filter (where state = 'uncertain'),
    count(*) filter (where state = 'failed'), min(ended_at) filter (where state = 'failed')
from lease where handler = $1 and state in ('pending', 'claimed', 'submitting', 'uncertain', 'failed')`

// Why returns why a handler's mails are not sent: the mail server is down, or an operator must decide about uncertain
// and failed mails. With a nil circuit it checks only the mails.
func Why(pool *pgxpool.Pool, handler string, mailServer *circuit.Circuit) service.Reason {
	return func(ctx context.Context) (causes []service.Cause, err error) {
		var open, uncertain, failed int64
		var since, failedSince *time.Time
		err = pool.QueryRow(ctx, countUnsettled, handler).Scan(&open, &uncertain, &since, &failed, &failedSince)
		if err != nil {
			return nil, fmt.Errorf("count mails: %w", err)
		}
		station := "mail/" + handler
		if mailServer != nil {
			causes = service.DownCause(mailServer, "mail_server_down", station,
				service.Waits(open, "mail")+". None is lost.")
		}
		if uncertain > 0 {
			causes = append(causes, service.Cause{
				Code: "mail_uncertain", Station: station, Since: *since, Command: "twinbox mail list --state uncertain",
				What:  service.Count(uncertain, "mail") + " may have been sent or not.",
				Means: "The connection broke after the mail was handed over. The service does not send it again.",
				Do:    "Look for the mail at the provider, then mark it as sent or send it again.",
			})
		}
		if failed > 0 {
			causes = append(causes, service.Cause{
				Code: "mail_failed", Station: station, Since: *failedSince, Command: "twinbox mail list --state failed",
				What:  service.Count(failed, "mail") + " could not be sent.",
				Means: "The mail server refused it for good, or each attempt failed. The service does not try again.",
				Do:    "Follow the error. Then send the mail again, or skip it.",
			})
		}
		return causes, nil
	}
}
