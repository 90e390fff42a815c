package mails

import (
	"context"
	"fmt"
	"time"

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

// Why is why mails wait: the mail server is away, where a circuit watches it, or it is for an operator to say whether
// one was sent.
func (l *List) Why(mailServer *circuit.Circuit) eventing.Reason {
	return func(ctx context.Context) (cause service.Cause, err error) {
		if mailServer != nil {
			cause = eventing.DownCause(causeServerDown, mailServer)
		}
		var open, uncertain int64
		var since *time.Time
		err = l.Pool.QueryRow(ctx, countUnsettled, l.Handler).Scan(&open, &uncertain, &since)
		switch {
		case err != nil:
			return cause, fmt.Errorf("count mails: %w", err)
		case cause.Code != "":
			cause.Figures = map[string]float64{"mails": float64(open)}
			cause.Command = "twinbox mail list --state pending"
		case uncertain > 0:
			mails, them := fmt.Sprintf("%d mails", uncertain), "them"
			if uncertain == 1 {
				mails, them = "1 mail", "it"
			}
			cause = service.Cause{
				Code: causeUncertain, Since: *since, Figures: map[string]float64{"mails": float64(uncertain)},
				Command: "twinbox mail list --state uncertain",
				Sentence: fmt.Sprintf("Of %s it is not known whether the mail server took %s, of the first since %s.", mails, them,
					since.UTC().Format(time.RFC3339)),
			}
		}
		return cause, nil
	}
}
