package notification

import (
	"cmp"
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

func TestMailsAreListedByPageAndFilter(t *testing.T) {
	t.Parallel()
	b := setup(t)
	mails := newMailList(b.pool, b.outbox)
	uncertain, failed := b.put(t, adminapi.Uncertain, 3), b.put(t, adminapi.Failed, 2)
	list := func(q adminapi.MailQuery) []adminapi.Mail {
		q.Limit = cmp.Or(q.Limit, 100)
		items, err := mails.List(t.Context(), q)
		require.NoError(t, err)
		return items
	}
	require.Equal(t, append(append([]uuid.UUID{}, uncertain...), failed...), listed(list(adminapi.MailQuery{})))
	require.Equal(t, uncertain, listed(list(adminapi.MailQuery{State: "uncertain"})))
	require.Equal(t, uncertain[:2], listed(list(adminapi.MailQuery{Limit: 2})))
	require.Len(t, list(adminapi.MailQuery{State: "open"}), 5)
	rest := list(adminapi.MailQuery{State: "open", After: uncertain[1].String()})
	require.Equal(t, append(uncertain[2:], failed...), listed(rest))

	one := list(adminapi.MailQuery{EventID: failed[1].String()})
	require.Equal(t, failed[1:], listed(one))
	require.Empty(t, one[0].Recipient, "an address only when asked for")
	require.Equal(t, one, list(adminapi.MailQuery{UserID: one[0].UserID}))
	require.Equal(t, "someone@example.org", list(adminapi.MailQuery{Recipient: true})[0].Recipient)
	require.Empty(t, list(adminapi.MailQuery{Since: one[0].CreatedAt.Add(time.Hour)}))
	require.Equal(t, failed[1:], listed(list(adminapi.MailQuery{Since: one[0].CreatedAt})))
	require.Len(t, list(adminapi.MailQuery{Until: one[0].CreatedAt}), 4)
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
		{Subject: sent[0].String(), Code: "mail_not_settled", Detail: "it is sent"},
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
