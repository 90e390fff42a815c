-- +goose Up

-- The leader looks for parked keys that are due, twice a second.
create index outbox_parked_due on public.outbox_parked (retry_at, topic, key);

-- +goose Down
drop index public.outbox_parked_due;
