-- +goose Up

-- Both indexes are summaries of page ranges: an insert does not touch them before its range is full and autovacuum sums
-- it up. Ids of the outbox's own (UUIDv7) lie in the order in which rows are inserted, so the least and the highest of a
-- range find one in a few blocks. Keys and causes lie anywhere, so a filter of about ten bits per value says which ranges
-- may hold one. Creating them reads the table once, and writers wait for that long.
create index outbox_event_id on public.outbox using brin (event_id) with (pages_per_range = 16, autosummarize = on);
create index outbox_key_and_cause on public.outbox
    using brin (key text_bloom_ops, (headers ->> 'ce_causationid') text_bloom_ops)
    with (pages_per_range = 16, autosummarize = on);
comment on index public.outbox_event_id is 'Finds the event of an id. It finds one that carries no time as well, at the price of the ranges in which such ids lie.';
comment on index public.outbox_key_and_cause is 'Finds the events of a key, and those that follow from an event.';

-- +goose Down
drop index public.outbox_event_id, public.outbox_key_and_cause;
