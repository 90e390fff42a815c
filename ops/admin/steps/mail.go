package steps

import (
	"fmt"
	"time"

	"example.com/twinbox/ops/admin/adminapi"
)

// Mail is what a service's tables say of a mail, in the order in which a row has it.
type Mail struct {
	ID, EventID, Key, Correlation string
	State                         adminapi.MailState
	Attempts                      int
	CreatedAt                     time.Time
	EndedAt                       *time.Time
	Now                           time.Time
}

// Owed is the step at which the mail became due.
func (m Mail) Owed() adminapi.StoryStep {
	return adminapi.StoryStep{
		At: m.CreatedAt, Station: adminapi.StoryStepStationMail, Outcome: Owed, EventID: m.EventID,
		Key: m.Key, CorrelationID: m.Correlation, Subject: m.ID,
	}
}

// Steps are when the mail became due, and how far it is.
func (m Mail) Steps() []adminapi.StoryStep {
	told := []adminapi.StoryStep{m.Owed()}
	if m.State != adminapi.Pending || m.Attempts > 0 {
		now := m.Owed()
		now.At, now.Outcome, now.Detail = m.Now, string(m.State), fmt.Sprintf("attempts: %d", m.Attempts)
		if m.EndedAt != nil {
			now.At = *m.EndedAt
		}
		told = append(told, now)
	}
	return told
}
