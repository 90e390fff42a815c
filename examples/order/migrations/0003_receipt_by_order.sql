-- +goose Up
create index receipt_id on public.receipt (id);
create index receipt_order_id on public.receipt (order_id);

-- +goose Down
drop index public.receipt_id, public.receipt_order_id;
