-- +goose Up

create table public.outbox_scheduled (
    name         text        collate "C" primary key,
    due_at       timestamptz not null,
    event_type   text        not null,
    source       text        not null,
    topic        text        collate "C" not null,
    key          text        collate "C" not null,
    data_schema  text        not null,
    occurred_at  timestamptz,
    headers      jsonb,
    payload      bytea       not null,
    scheduled_at timestamptz not null default clock_timestamp()
);
create index outbox_scheduled_due_at on public.outbox_scheduled (due_at);
comment on table public.outbox_scheduled is 'Events that are due later. The leading relay moves a row into the outbox when it is due, in one transaction, and only there does the event get its id, its version and its place. Cancelled by deleting the row.';
comment on column public.outbox_scheduled.due_at is 'On this database''s clock.';
comment on column public.outbox_scheduled.occurred_at is 'The event''s time. Null: due_at.';

-- +goose Down
drop table public.outbox_scheduled;
