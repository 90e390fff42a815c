package notification

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/engine/audit"
	"example.com/twinbox/engine/lease"
	"example.com/twinbox/internal/contract"
)

// owe lists a mail to a contact of its own.
func (b *bundle) owe(t *testing.T, id uuid.UUID, email string) {
	t.Helper()
	require.NoError(t, pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		user := uuid.Must(uuid.NewV7())
		_, contactErr := tx.Exec(t.Context(), insertContact, user, email, "Somebody", 1)
		_, mailErr := tx.Exec(t.Context(), insertMail, id, id.String(), templateVerification, user, email,
			id.String(), "", "")
		return errors.Join(contactErr, mailErr, lease.Add(t.Context(), tx, handlerVerification, id.String()))
	}))
}

// put lists n mails in the state and returns their ids in order.
func (b *bundle) put(t *testing.T, state MailState, n int) []uuid.UUID {
	t.Helper()
	ids := make([]uuid.UUID, n)
	for i := range ids {
		ids[i] = uuid.Must(uuid.NewV7())
		b.owe(t, ids[i], "somebody@example.org")
		if state == MailSent {
			state = "done"
		}
		_, err := b.pool.Exec(t.Context(), `update lease set state = $2, attempts = 3,
			ended_at = case $2 when 'pending' then null else clock_timestamp() end where event_id = $1`, ids[i].String(), state)
		require.NoError(t, err)
	}
	return ids
}

func viewed(views []MailView) []uuid.UUID {
	var ids []uuid.UUID
	for _, v := range views {
		ids = append(ids, v.ID)
	}
	return ids
}

func TestMailsAreListedByPageAndFilter(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	mails := NewMails(b.pool, b.outbox)
	uncertain, failed := b.put(t, MailUncertain, 3), b.put(t, MailFailed, 2)
	list := func(f MailFilter) []MailView {
		views, err := mails.List(t.Context(), f)
		require.NoError(t, err)
		return views
	}
	require.Equal(t, append(append([]uuid.UUID{}, uncertain...), failed...), viewed(list(MailFilter{})))
	require.Equal(t, uncertain, viewed(list(MailFilter{State: MailUncertain})))
	require.Equal(t, uncertain[:2], viewed(list(MailFilter{Limit: 2})))
	require.Equal(t, append(uncertain[2:], failed...), viewed(list(MailFilter{After: uncertain[1]})))

	one := list(MailFilter{EventID: failed[1].String()})
	require.Equal(t, failed[1:], viewed(one))
	require.Empty(t, one[0].Recipient, "an address only when asked for")
	require.Equal(t, one, list(MailFilter{UserID: one[0].UserID}))
	require.EqualValues(t, "somebody@example.org", list(MailFilter{WithRecipient: true})[0].Recipient)
	require.Empty(t, list(MailFilter{From: one[0].CreatedAt.Add(time.Hour)}))
	require.Equal(t, failed[1:], viewed(list(MailFilter{From: one[0].CreatedAt})))
	require.Len(t, list(MailFilter{To: one[0].CreatedAt}), 4)
}

func TestRetryPutsAMailBackUnderItsOldMessageID(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	mails := NewMails(b.pool, b.outbox)
	uncertain, sent := b.put(t, MailUncertain, 1), b.put(t, MailSent, 1)
	nobody := uuid.Must(uuid.NewV7())

	_, err := mails.Retry(t.Context(), uncertain, "ada", " ")
	require.ErrorIs(t, err, ErrNoAuthor)

	n, err := mails.Retry(t.Context(),
		[]uuid.UUID{uncertain[0], uncertain[0], sent[0], nobody}, "ada", "asked the provider")
	require.Equal(t, 1, n)
	var left *NotSettledError
	require.ErrorAs(t, err, &left)
	require.Equal(t, &NotSettledError{
		Missing: []uuid.UUID{nobody}, Refused: map[uuid.UUID]MailState{sent[0]: MailSent},
	}, left)
	actions, err := audit.Of(t.Context(), b.pool, "mail", uncertain[0].String())
	require.NoError(t, err)
	require.Len(t, actions, 1)
	require.Equal(t, []string{"ada", "retry", "asked the provider", "uncertain", "pending"},
		[]string{actions[0].By, actions[0].Verb, actions[0].Reason, actions[0].Before, actions[0].After})

	n, err = mails.Retry(t.Context(), uncertain, "ada", "again")
	require.Zero(t, n, "a second call changes nothing")
	require.ErrorAs(t, err, &left)

	b.start(t)
	messages, err := b.box.Await(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, uncertain[0].String()+"@example.com", messages[0].MessageID)
}

func TestMarkSentSaysSoLikeASender(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	mails := NewMails(b.pool, b.outbox)
	uncertain := b.put(t, MailUncertain, 2)
	n, err := mails.MarkSent(t.Context(), uncertain, "ada", "it is in the provider's log")
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Equal(t, 2, b.count(t, `select count(*) from outbox where event_type = $1`,
		contract.VerificationEmailSent.Type))
	views, err := mails.List(t.Context(), MailFilter{State: MailSent})
	require.NoError(t, err)
	require.Equal(t, uncertain, viewed(views))
	require.NotNil(t, views[0].SentAt)
	require.Equal(t, 2, b.count(t, `select count(*) from operator_action where verb = 'mark_sent' and kind = 'mail'`))
	b.put(t, MailPending, 1)
	b.start(t)
	_, err = b.box.Await(t.Context(), 1)
	require.NoError(t, err)
	require.Len(t, b.box.Messages(), 1, "a mail marked as sent is not sent")
}
