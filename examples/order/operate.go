package order

import (
	"context"
	"fmt"
	"net/http"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/frame/eventing"
	"example.com/twinbox/ops"
	"example.com/twinbox/ops/admin"
	"example.com/twinbox/ops/admin/adminapi"
	"example.com/twinbox/ops/admin/steps"
)

func offerOperations(node *eventing.Node) (prefix string, handler http.Handler, err error) {
	return ops.OfferWith(node, ops.Own{Tell: tellOf(node.Pool)})
}

// Each of the conditions has an index.
const selectStory = `
select r.id::text, r.event_id, r.order_id::text, r.correlation_id,
    case lease.state when 'done' then 'sent' else lease.state end, lease.attempts, r.created_at, lease.ended_at,
    clock_timestamp()
from receipt r join lease on lease.event_id = r.event_id and lease.handler = '` + handlerReceipt + `'
where r.id = $1 or r.order_id = $1 or r.event_id = $2
order by r.created_at limit 1000`

// tellOf tells of receipts: when one was added, and how far it is.
func tellOf(pool *pgxpool.Pool) admin.Teller {
	return func(ctx context.Context, id string) (told admin.Told, err error) {
		var parsed *uuid.UUID
		if u, err := uuid.Parse(id); err == nil {
			parsed = &u
		}
		rows, _ := pool.Query(ctx, selectStory, parsed, id)
		found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[steps.Mail])
		if err != nil {
			return told, fmt.Errorf("read receipts: %w", err)
		}
		for _, receipt := range found {
			if receipt.ID == id {
				told.Kind = adminapi.StoryKindMail
			}
			told.Steps = append(told.Steps, receipt.Steps()...)
			told.Related = append(told.Related, receipt.EventID)
		}
		return told, nil
	}
}
