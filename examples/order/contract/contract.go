// Package contract declares the events of the Order service and of the payment simulator. The folder events has the
// schemas.
package contract

import (
	"embed"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/event"
)

// TopicTimers has the events that Order schedules for itself.
const (
	TopicOrders   = contract.TopicPrefix + "order.orders.v1"
	TopicTimers   = contract.TopicPrefix + "order.timers.v1"
	TopicPayments = contract.TopicPrefix + "payments.payments.v1"
)

const (
	SourceOrder    = "/twinbox/order"
	SourcePayments = "/twinbox/payments"
)

var (
	OrderPlaced      = define[Placed](TopicOrders, SourceOrder, "order", "order-placed.v1")
	OrderPaid        = define[Paid](TopicOrders, SourceOrder, "order", "order-paid.v1")
	OrderCancelled   = define[Cancelled](TopicOrders, SourceOrder, "order", "order-cancelled.v1")
	RefundDue        = define[Refund](TopicOrders, SourceOrder, "order", "refund-due.v1")
	PaymentOverdue   = define[Overdue](TopicTimers, SourceOrder, "order", "payment-overdue.v1")
	PaymentCompleted = define[Payment](TopicPayments, SourcePayments, "payments", "payment-completed.v1")
)

//go:embed events/*.json
var files embed.FS

func All() []event.Declaration {
	return []event.Declaration{
		OrderPlaced.Declaration, OrderPaid.Declaration, OrderCancelled.Declaration, RefundDue.Declaration,
		PaymentOverdue.Declaration, PaymentCompleted.Declaration,
	}
}

// Load compiles the schemas of all events. It fails only when one is broken or missing.
func Load() (*event.Checker, error) { return event.LoadSchemas(files, All()...) }

func define[T event.Ruled](topic, source, service, name string) event.Definition[T] {
	return event.Define[T](event.Declaration{
		Type:       contract.TypePrefix + service + "." + name,
		Topic:      topic,
		Source:     source,
		DataSchema: "https://example.com/twinbox/examples/order/events/" + name + ".json",
	})
}
