package notification

import (
	"context"
	"fmt"
	"time"

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

// tell tells of users and of mails: when a mail was owed, how far it is, and what operators did to it.
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
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[toldMail])
	if err != nil {
		return told, fmt.Errorf("read mails: %w", err)
	}
	for _, mail := range found {
		if mail.ID == id {
			told.Kind = adminapi.StoryKindMail
		}
		actions, err := audit.Of(ctx, m.pool, "mail", mail.ID)
		if err != nil {
			return told, err
		}
		told.Steps = append(told.Steps, mail.steps(actions)...)
		told.Related = append(told.Related, mail.EventID)
	}
	return told, nil
}

// toldMail is what a story says of a mail.
type toldMail struct {
	ID, EventID, UserID, Correlation string
	State                            adminapi.MailState
	Attempts                         int
	CreatedAt                        time.Time
	EndedAt                          *time.Time
	Now                              time.Time
}

func (m toldMail) steps(actions []audit.Action) []adminapi.StoryStep {
	owed := adminapi.StoryStep{
		At: m.CreatedAt, Station: adminapi.StoryStepStationMail, Outcome: steps.Owed, EventId: m.EventID,
		Key: m.UserID, CorrelationId: m.Correlation, Subject: m.ID,
	}
	told := []adminapi.StoryStep{owed}
	if m.State != adminapi.Pending || m.Attempts > 0 {
		now := owed
		now.At, now.Outcome, now.Detail = m.Now, string(m.State), fmt.Sprintf("attempts: %d", m.Attempts)
		if m.EndedAt != nil {
			now.At = *m.EndedAt
		}
		told = append(told, now)
	}
	for _, a := range actions {
		done := owed
		done.At, done.Station, done.Outcome = a.At, adminapi.StoryStepStationAudit, a.Verb
		done.Detail = "by " + a.By + ": " + a.Reason
		told = append(told, done)
	}
	return told
}
