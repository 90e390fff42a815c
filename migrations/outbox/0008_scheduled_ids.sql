-- +goose Up
alter table public.outbox_scheduled add column event_id uuid;
comment on column public.outbox_scheduled.event_id is 'The event''s id, whose time is the due time. Null: an earlier release stored the row, and the event gets its id when it is added.';
