// Package mismatch handles one event with the struct of another. It must not compile.
package mismatch

import (
	"context"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
)

type (
	placed  struct{ Total int }
	shipped struct{ Parcel string }
)

var orderPlaced = event.Define[placed](event.Declaration{Type: "com.example.order-placed.v1"})

func register(mux *inbox.Mux) {
	inbox.Handle(mux, orderPlaced, func(context.Context, pgx.Tx, event.Event, shipped) error { return nil })
}
