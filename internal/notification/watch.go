package notification

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/engine/verify"
	"example.com/twinbox/frame/circuit"
	"example.com/twinbox/frame/eventing"
	"example.com/twinbox/frame/service"
	"example.com/twinbox/internal/contract"
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

// mailCheck finds sign-ups that were taken in and have no mail, or one that no sender knows of.
type mailCheck struct {
	retention time.Duration // of mails; 0: they are kept
}

func (c mailCheck) find(ctx context.Context, tx pgx.Tx) ([]verify.Finding, error) {
	rows, _ := tx.Query(ctx, selectUnmailed, usersConsumer, contract.UserRegistered.Type, handlerVerification,
		templateVerification, c.retention.Seconds())
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("look for mails: %w", err)
	}
	found := make([]verify.Finding, len(ids))
	for i, id := range ids {
		found[i] = verify.Finding{EventID: id, Detail: "the sign-up has no mail that is sent or will be"}
	}
	return found, nil
}

// An applied event moves its key's watermark and the contact's version in one transaction, so they are always equal.
const selectOddContacts = `
select coalesce(w.key, c.user_id::text), coalesce(w.version, 0), coalesce(c.version, 0)
from (select key, version from public.inbox_watermark where consumer = $1) w
full join contact c on c.user_id::text = w.key
where c.version is distinct from w.version
limit 1000`

// checkContacts finds contacts that are not at the version up to which their events were applied.
func checkContacts(ctx context.Context, tx pgx.Tx) ([]verify.Finding, error) {
	return verify.CompareVersions(ctx, tx, "contact", selectOddContacts, usersConsumer)
}
