package notification

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/frame/circuit"
	"example.com/twinbox/frame/eventing"
	"example.com/twinbox/frame/service"
)

// The codes of this service's own causes.
const (
	causeMailServerDown = "mail_server_down"
	causeMailUncertain  = "mail_uncertain"
)

const countUnsettled = `
select count(*) filter (where state <> 'uncertain'), count(*) filter (where state = 'uncertain'),
    min(ended_at) filter (where state = 'uncertain')
from lease where handler = $1 and state in ('pending', 'claimed', 'submitting', 'uncertain')`

// reasonsOf are why mails wait: the mail server is away, or it is for an operator to say whether one was sent.
func reasonsOf(pool *pgxpool.Pool, mailServer *circuit.Circuit) []eventing.Reason {
	count := func(ctx context.Context) (open, uncertain int64, since *time.Time, err error) {
		if err = pool.QueryRow(ctx, countUnsettled, handlerVerification).Scan(&open, &uncertain, &since); err != nil {
			err = fmt.Errorf("count mails: %w", err)
		}
		return open, uncertain, since, err
	}
	return []eventing.Reason{
		func(ctx context.Context) (service.Cause, error) {
			down, is := errors.AsType[*circuit.DownError](mailServer.Err())
			if !is {
				return service.Cause{}, nil
			}
			cause := eventing.DownCause(causeMailServerDown, down)
			open, _, _, err := count(ctx)
			cause.Figures["mails"] = float64(open)
			cause.Command = "twinbox mail list --state pending"
			return cause, err
		},
		func(ctx context.Context) (service.Cause, error) {
			_, uncertain, since, err := count(ctx)
			if err != nil || uncertain == 0 {
				return service.Cause{}, err
			}
			mails, them := fmt.Sprintf("%d mails", uncertain), "them"
			if uncertain == 1 {
				mails, them = "1 mail", "it"
			}
			return service.Cause{
				Code: causeMailUncertain, Since: *since, Figures: map[string]float64{"mails": float64(uncertain)},
				Command: "twinbox mail list --state uncertain",
				Sentence: fmt.Sprintf("Of %s it is not known whether the mail server took %s, of the first since %s.", mails, them,
					since.UTC().Format(time.RFC3339)),
			}, nil
		},
	}
}
