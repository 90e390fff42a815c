-- +goose Up

-- An id that a caller gave may come back; one that the outbox made does not. Only the former are remembered, so that
-- the usual append writes nothing here. One table for all of them: the partitions of the outbox go by position, and no
-- unique index of theirs could see an id in another one.
create table public.outbox_given_id (
    event_id uuid        primary key,
    content  bytea       not null,
    repeats  integer     not null default 0,
    added_at timestamptz not null default clock_timestamp()
) with (fillfactor = 90);
create index outbox_given_id_added on public.outbox_given_id (added_at);
comment on table public.outbox_given_id is 'Event ids that callers gave, written in the transaction that adds the event: a second transaction with the same id waits for the first one''s end. Forgotten when no consumer can remember the event any more.';
comment on column public.outbox_given_id.content is 'SHA-256 of what the event says: source, type, topic, key, the version if it was named, payload.';
comment on column public.outbox_given_id.repeats is 'How often the id came again. 0 right after the row was claimed: the event is to be added.';

-- +goose Down
drop table public.outbox_given_id;
