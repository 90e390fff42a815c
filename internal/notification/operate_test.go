package notification

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/lease"
	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/web"
)

func (b *bundle) put(t *testing.T, state adminapi.MailState, n int) []uuid.UUID {
	t.Helper()
	ids := make([]uuid.UUID, n)
	for i := range ids {
		ids[i] = uuid.Must(uuid.NewV7())
		b.owe(t, ids[i], "someone@example.org")
		if state == adminapi.Sent {
			state = "done"
		}
		_, err := b.pool.Exec(t.Context(), `update lease set state = $2, attempts = 3,
			ended_at = case $2 when 'pending' then null else clock_timestamp() end where event_id = $1`, ids[i].String(), state)
		require.NoError(t, err)
	}
	return ids
}

func listed(items []adminapi.Mail) []uuid.UUID {
	var ids []uuid.UUID
	for _, m := range items {
		ids = append(ids, uuid.MustParse(m.ID))
	}
	return ids
}

func texts(ids ...uuid.UUID) []string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	return texts
}

func TestRetryPutsAMailBackUnderItsOldMessageID(t *testing.T) {
	t.Parallel()
	b := setup(t)
	mails := newMailList(b.pool, b.outbox)
	uncertain, sent := b.put(t, adminapi.Uncertain, 1), b.put(t, adminapi.Sent, 1)
	missing := uuid.Must(uuid.NewV7())

	ada := audit.Change{By: "ada", Reason: "asked the provider", DryRun: true}
	ids := texts(uncertain[0], uncertain[0], sent[0], missing)
	would, err := mails.Retry(t.Context(), ids, ada)
	require.NoError(t, err)
	require.Equal(t, 1, b.count(t, `select count(*) from lease where state = 'uncertain'`), "a dry run changes nothing")
	ada.DryRun = false
	result, err := mails.Retry(t.Context(), ids, ada)
	require.NoError(t, err)
	require.Equal(t, adminapi.Result{Count: 1, Failed: 2, Errors: []adminapi.Failure{
		{Subject: sent[0].String(), Code: "mail_not_settled", Detail: "it is sent, not uncertain, failed or skipped"},
		{Subject: missing.String(), Code: "mail_not_found", Detail: "there is no such mail"},
	}}, result)
	result.DryRun = true
	require.Equal(t, result, would)
	actions, err := audit.Of(t.Context(), b.pool, "mail", uncertain[0].String())
	require.NoError(t, err)
	require.Len(t, actions, 1)
	require.Equal(t, []string{"ada", "retry", "asked the provider", "uncertain", "pending"},
		[]string{actions[0].By, actions[0].Verb, actions[0].Reason, actions[0].Before, actions[0].After})

	result, err = mails.Retry(t.Context(), texts(uncertain...), ada)
	require.NoError(t, err)
	require.Zero(t, result.Count, "a second call changes nothing")
	require.EqualValues(t, 1, result.Failed)
	_, err = mails.Retry(t.Context(), texts(missing), ada)
	var unknown *web.Error
	require.ErrorAs(t, err, &unknown)
	require.EqualValues(t, "mail_not_found", unknown.Code)

	b.start(t)
	messages := b.awaitMail(t)
	require.Equal(t, uncertain[0].String()+"@example.com", messages[0].MessageID)
}

func TestMarkSentSaysSoLikeASender(t *testing.T) {
	t.Parallel()
	b := setup(t)
	mails := newMailList(b.pool, b.outbox)
	uncertain := b.put(t, adminapi.Uncertain, 2)
	result, err := mails.MarkSent(t.Context(), texts(uncertain...),
		audit.Change{By: "ada", Reason: "it is in the provider's log"})
	require.NoError(t, err)
	require.Equal(t, adminapi.Result{Count: 2}, result)
	require.Equal(t, 2, b.count(t, `select count(*) from outbox where event_type = $1`,
		contract.VerificationEmailSent.Type))
	items, err := mails.List(t.Context(), adminapi.MailQuery{State: "sent", Limit: 10})
	require.NoError(t, err)
	require.Equal(t, uncertain, listed(items))
	require.NotNil(t, items[0].SentAt)
	require.Equal(t, 2, b.count(t, `select count(*) from operator_action where verb = 'mark_sent' and kind = 'mail'`))
	b.put(t, adminapi.Pending, 1)
	b.start(t)
	require.Len(t, b.awaitMail(t), 1, "a mail marked as sent is not sent")
}

func TestTheStoryOfAFailedMailHasItsError(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.put(t, adminapi.Failed, 1)[0].String()
	_, err := b.pool.Exec(t.Context(), `update lease set error = 'submit mail: 550'`)
	require.NoError(t, err)
	story, err := newMailList(b.pool, b.outbox).Tell(t.Context(), id)
	require.NoError(t, err)
	require.Len(t, story.Steps, 2)
	require.Equal(t, "attempts: 3; submit mail: 550", story.Steps[1].Detail)
}

func TestNothingIsAnnouncedAfterARollback(t *testing.T) {
	t.Parallel()
	b := setup(t)
	mails := newMailList(b.pool, b.outbox)
	refused, committed := errors.New("refused"), 0
	mails.Committed = func() { committed++ }
	announce := mails.Sent
	mails.Sent = func(context.Context, pgx.Tx, ...lease.Settled) error { return refused }
	ids, ada := texts(b.put(t, adminapi.Uncertain, 1)...), audit.Change{By: "ada", Reason: "a test"}
	_, err := mails.MarkSent(t.Context(), ids, ada)
	require.ErrorIs(t, err, refused)
	_, err = mails.MarkSent(t.Context(), ids, audit.Change{By: "ada", Reason: "a test", DryRun: true})
	require.ErrorIs(t, err, refused, "a dry run tries the same")
	require.Zero(t, committed)
	mails.Sent = announce
	_, err = mails.MarkSent(t.Context(), ids, ada)
	require.NoError(t, err)
	require.Equal(t, 1, committed)
}

func TestMailsAreAnnouncedInTheOrderOfKeys(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var sent []lease.Settled
	for i, mail := range b.put(t, adminapi.Uncertain, 3) {
		_, err := b.pool.Exec(t.Context(), `update mail set user_id = $2 where id = $1`, mail,
			uuid.UUID{byte(3 - i), 6: 0x40, 8: 0x80})
		require.NoError(t, err)
		sent = append(sent, lease.Settled{EventID: mail.String(), At: time.Now()})
	}
	require.NoError(t, pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		return announceSent(t.Context(), tx, b.outbox, sent...)
	}))
	var keys []string
	require.NoError(t, b.pool.QueryRow(t.Context(), `select array_agg(key order by position) from outbox`).Scan(&keys))
	require.Len(t, keys, 3)
	require.IsIncreasing(t, keys)
}

func TestAPurgedMailIsNotMissed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.register(t)
	for _, sql := range []string{
		`update inbox set consumer = '` + usersConsumer + `', processed_at = processed_at - interval '3 h'`,
		`delete from mail`,
	} {
		_, err := b.pool.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	for retention, want := range map[time.Duration]int{time.Hour: 0, 4 * time.Hour: 1} {
		mails := checks(Config{Mail: lease.Settings{Retention: retention}})[1]
		rows, err := b.pool.Query(t.Context(), mails.SQL, mails.Args...)
		require.NoError(t, err)
		found, err := pgx.CollectRows(rows, pgx.RowToMap)
		require.NoError(t, err)
		require.Len(t, found, want)
	}
}
