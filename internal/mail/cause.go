package mail

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/circuit"
	"example.com/twinbox/internal/service/eventing"
)

// The codes of the causes.
const (
	causeServerDown = "mail_server_down"
	causeUncertain  = "mail_uncertain"
)

const countUnsettled = `
select count(*) filter (where state <> 'uncertain'), count(*) filter (where state = 'uncertain'),
    min(ended_at) filter (where state = 'uncertain')
from lease where handler = $1 and state in ('pending', 'claimed', 'submitting', 'uncertain')`

// Why finds out why the mails of a lease handler wait: the mail server is down, or an operator must decide whether a
// mail was sent. Without a circuit (nil) it does not look at the mail server.
func Why(pool *pgxpool.Pool, handler string, mailServer *circuit.Circuit) eventing.Reason {
	return func(ctx context.Context) (cause service.Cause, err error) {
		if mailServer != nil {
			cause = eventing.DownCause(causeServerDown, mailServer)
		}
		var open, uncertain int64
		var since *time.Time
		err = pool.QueryRow(ctx, countUnsettled, handler).Scan(&open, &uncertain, &since)
		switch {
		case err != nil:
			return cause, fmt.Errorf("count mails: %w", err)
		case cause.Code != "":
			cause.Figures = map[string]float64{"mails": float64(open)}
			cause.Command = "twinbox mail list --state pending"
		case uncertain > 0:
			count, them := fmt.Sprintf("%d mails", uncertain), "them"
			if uncertain == 1 {
				count, them = "1 mail", "it"
			}
			cause = service.Cause{
				Code: causeUncertain, Since: *since, Figures: map[string]float64{"mails": float64(uncertain)},
				Command: "twinbox mail list --state uncertain",
				Sentence: fmt.Sprintf("Of %s it is not known whether the mail server took %s, of the first since %s.", count, them,
					since.UTC().Format(time.RFC3339)),
			}
		}
		return cause, nil
	}
}
