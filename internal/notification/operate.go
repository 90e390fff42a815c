package notification

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/lease"
	"example.com/twinbox/internal/ops"
	"example.com/twinbox/internal/ops/admin"
	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/internal/service/eventing"
)

const operatedMails = `
select id, event_id, template, user_id, recipient, coalesce(correlation_id, event_id) as correlation_id, created_at
from mail where template = '` + templateVerification + `'`

// newMailList announces a mail that an operator marks as sent, too.
func newMailList(pool *pgxpool.Pool, out *outbox.Outbox) *admin.MailList {
	return &admin.MailList{
		Pool: pool, Handler: handlerVerification, Query: operatedMails, Committed: out.Committed,
		Sent: func(ctx context.Context, tx pgx.Tx, sent ...lease.Settled) error {
			return announceSent(ctx, tx, out, sent...)
		},
	}
}

func offerOperations(node *eventing.Node, _ Config) error {
	list := newMailList(node.Pool, node.Outbox)
	return ops.Offer(node, ops.Own{Mails: list, Tell: func(ctx context.Context, id string) (adminapi.Story, error) {
		return readStory(ctx, list, id)
	}})
}

const selectContact = `select exists (select from contact where user_id = $1)`

// readStory adds to the story of a mail that the id of a contact is a user's.
func readStory(ctx context.Context, list *admin.MailList, id string) (story adminapi.Story, err error) {
	story, err = list.Tell(ctx, id)
	user, notOne := uuid.Parse(id)
	if err != nil || story.Kind != "" || notOne != nil {
		return story, err
	}
	var isContact bool
	if err := list.Pool.QueryRow(ctx, selectContact, user).Scan(&isContact); err != nil {
		return story, fmt.Errorf("read contact: %w", err)
	}
	if isContact {
		story.Kind = adminapi.StoryKindUser
	}
	return story, nil
}

// A row means that the event is applied. A purged mail was sent long after.
const selectUnmailed = `
select i.event_id, '' as key, 0 as version, 'the sign-up has no mail that is sent or will be' as detail
from public.inbox i
where i.consumer = $1 and i.event_type = $2 and coalesce(i.metadata ->> 'outcome', 'applied') = 'applied'
    and ($5::float8 = 0 or i.processed_at > clock_timestamp() - make_interval(secs => $5))
    and not exists (select from mail m join public.lease l on l.event_id = m.event_id and l.handler = $3
        where m.event_id = i.event_id and m.template = $4)
limit 1000`

// With a retention of 0 mails are kept.
func checks(cfg Config) []eventing.Check {
	return []eventing.Check{
		eventing.CheckProjection("contacts", "contact", "user_id", usersConsumer),
		{Name: "mails", SQL: selectUnmailed, Args: []any{
			usersConsumer, contract.UserRegistered.Type, handlerVerification, templateVerification,
			cfg.Mail.Retention.Seconds(),
		}},
	}
}
