package order

import (
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/internal/ops"
	"example.com/twinbox/internal/ops/admin"
	"example.com/twinbox/internal/service/eventing"
)

// A receipt belongs to its order.
const operatedReceipts = `
select r.id, r.event_id, 'receipt' as template, r.order_id as user_id, o.email as recipient, r.correlation_id,
    r.created_at
from receipt r join orders o on o.id = r.order_id`

func newReceiptList(pool *pgxpool.Pool) *admin.MailList {
	return &admin.MailList{Pool: pool, Handler: handlerReceipt, Query: operatedReceipts}
}

func offerOperations(node *eventing.Node, _ Config) error {
	list := newReceiptList(node.Pool)
	return ops.Offer(node, ops.Own{Mails: list, Tell: list.Tell})
}
