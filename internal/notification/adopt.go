package notification

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/lease"
	"example.com/twinbox/internal/contract"
)

const selectMailEvent = `select coalesce((select event_id from mail where id = $1), '')`

// adopt brings back what a restore took: that a mail is sent. Without it a mail that was on the list when the backup
// was taken would be sent again. Mails that came onto the list after the backup are not known here: their events come
// again, and so do they, once more.
func adopt(ctx context.Context, tx pgx.Tx, event cloudevent.Event) error {
	if event.Type != contract.VerificationEmailSent.Type {
		return nil
	}
	data, err := contract.VerificationEmailSent.Decode(event)
	if err != nil {
		return err
	}
	id, err := uuid.Parse(data.MailID)
	if err != nil {
		return fmt.Errorf("parse mail id: %w", err)
	}
	var owedFor string
	if err := tx.QueryRow(ctx, selectMailEvent, id).Scan(&owedFor); err != nil {
		return fmt.Errorf("find mail: %w", err)
	}
	return lease.Remember(ctx, tx, handlerVerification, owedFor)
}
