package notification

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/audit"
	"example.com/twinbox/ops/admin"
	"example.com/twinbox/ops/admin/adminapi"
	"example.com/twinbox/ops/admin/steps"
)

// Each of the conditions has an index. A mail under way has been so since its claim, which only its lease knows.
const selectStory = `
select mail.id::text, mail.event_id, mail.user_id::text, coalesce(mail.correlation_id, mail.event_id),
    ` + mailState + `, lease.attempts, mail.created_at, lease.ended_at,
    clock_timestamp()
from mail join lease on lease.event_id = mail.event_id and lease.handler = 'mail.' || mail.template
where mail.id = $1 or mail.user_id = $1 or mail.event_id = $2
order by mail.id limit 1000`

const selectContact = `select exists (select from contact where user_id = $1)`

// tell tells of users and of mails: when a mail was added, how far it is, and what operators did to it.
func (m mails) tell(ctx context.Context, id string) (told admin.Told, err error) {
	var parsed *uuid.UUID
	if u, err := uuid.Parse(id); err == nil {
		parsed = &u
		var known bool
		if err := m.pool.QueryRow(ctx, selectContact, u).Scan(&known); err != nil {
			return told, fmt.Errorf("read contact: %w", err)
		}
		if known {
			told.Kind = adminapi.StoryKindUser
		}
	}
	rows, _ := m.pool.Query(ctx, selectStory, parsed, id)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[steps.Mail])
	if err != nil {
		return told, fmt.Errorf("read mails: %w", err)
	}
	for _, mail := range found {
		if mail.ID == id {
			told.Kind = adminapi.StoryKindMail
		}
		told.Steps = append(told.Steps, mail.Steps()...)
		told.Related = append(told.Related, mail.EventID)
		actions, err := audit.Of(ctx, m.pool, "mail", mail.ID)
		if err != nil {
			return told, err
		}
		for _, a := range actions {
			done := mail.Owed()
			done.At, done.Station, done.Outcome = a.At, adminapi.StoryStepStationAudit, a.Verb
			done.Detail = "by " + a.By + ": " + a.Reason
			told.Steps = append(told.Steps, done)
		}
	}
	return told, nil
}
