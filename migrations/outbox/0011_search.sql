-- +goose Up

-- The events of a request and of a trace are found like those of a key: see 0006_trace.sql. Creating the index reads the
-- table once, and writers wait for that long.
drop index public.outbox_key_and_cause;
create index outbox_key_and_cause on public.outbox
    using brin (key text_bloom_ops, (headers ->> 'ce_causationid') text_bloom_ops,
        (headers ->> 'ce_correlationid') text_bloom_ops, substr(headers ->> 'traceparent', 4, 32) text_bloom_ops)
    with (pages_per_range = 16, autosummarize = on);
comment on index public.outbox_key_and_cause is 'Finds the events of a key, a request or a trace, and those that follow from an event.';

-- +goose Down
drop index public.outbox_key_and_cause;
create index outbox_key_and_cause on public.outbox
    using brin (key text_bloom_ops, (headers ->> 'ce_causationid') text_bloom_ops)
    with (pages_per_range = 16, autosummarize = on);
comment on index public.outbox_key_and_cause is 'Finds the events of a key, and those that follow from an event.';
