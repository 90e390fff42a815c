package outbox

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// source is what is published page by page: a window, or what a restore left.
type source interface {
	read(ctx context.Context, above int64) (page, error)
	advance(ctx context.Context, pos int64, also func(pgx.Tx) error) error
	finish(ctx context.Context, also func(pgx.Tx) error) error
}

type windowSource struct {
	r *reader
	w *window
}

func (s windowSource) read(ctx context.Context, above int64) (page, error) {
	return s.r.page(ctx, s.w, above)
}

func (s windowSource) advance(ctx context.Context, pos int64, also func(pgx.Tx) error) error {
	return s.r.advance(ctx, pos, also)
}

func (s windowSource) finish(ctx context.Context, also func(pgx.Tx) error) error {
	return s.r.finish(ctx, also)
}

type leftoverSource struct{ r *reader }

func (s leftoverSource) read(ctx context.Context, above int64) (page, error) {
	return s.r.leftoverPage(ctx, above)
}

func (s leftoverSource) advance(ctx context.Context, pos int64, also func(pgx.Tx) error) error {
	return s.r.leftoverAdvance(ctx, pos, also)
}

func (s leftoverSource) finish(ctx context.Context, also func(pgx.Tx) error) error {
	return s.r.leftoverFinish(ctx, also)
}
