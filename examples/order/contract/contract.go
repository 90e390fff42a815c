// Package contract declares the events of the Order example. Whoever reads or writes one takes its declaration from
// here and its schema from the folder events.
package contract

import (
	"embed"
	"errors"
	"regexp"
	"time"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/schema"
)

// The topics.
const (
	TopicOrders = "order.orders.v1"
)

// SourceOrder is the ce_source of the Order service.
const SourceOrder = "/twinbox/order"

// OrderPlaced says that somebody ordered and owes the amount. It is the first event of every order.
var OrderPlaced = define[Placed](TopicOrders, SourceOrder, "order", "order-placed.v1")

// Placed is the payload of [OrderPlaced].
type Placed struct {
	OrderID  string    `json:"order_id"`
	Amount   int64     `json:"amount"` // in the currency's minor unit: 1999 EUR are 19.99 euros
	Currency string    `json:"currency"`
	PlacedAt time.Time `json:"placed_at"`
}

//go:embed events/*.json
var files embed.FS

// All returns every declaration.
func All() []cloudevent.Declaration {
	return []cloudevent.Declaration{OrderPlaced.Declaration}
}

// Load compiles the schemas of all events. It fails only when one is broken or missing.
func Load() (*schema.Checker, error) { return schema.Load(files, All()...) }

func define[T schema.Ruled](topic, source, service, name string) cloudevent.Definition[T] {
	return cloudevent.Define[T](cloudevent.Declaration{
		Type:       "com.example." + service + "." + name,
		Topic:      topic,
		Source:     source,
		DataSchema: "https://example.com/twinbox/examples/order/events/" + name + ".json",
	})
}

var canonicalUUID = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// CheckID refuses what is not a UUID in lower case: an id has one spelling.
func CheckID(id string) error {
	if !canonicalUUID.MatchString(id) {
		return errors.New("an id is not a lower-case UUID")
	}
	return nil
}

// Check implements [schema.Ruled].
func (e Placed) Check() error { return CheckID(e.OrderID) }

// About implements [schema.Ruled].
func (e Placed) About() string { return e.OrderID }

// HappenedAt implements [schema.Ruled].
func (e Placed) HappenedAt() time.Time { return e.PlacedAt }
