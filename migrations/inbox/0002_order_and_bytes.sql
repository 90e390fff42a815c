-- +goose Up

comment on column public.inbox.metadata is 'Where the record lay (group, topic, partition, offset), its correlation id, when its transaction began by the clock of the process (processing_time), and what the consumer decided (outcome: applied, stale, gap, parked or dead). A row without an outcome was written before all of them were stored: it was applied or stale. conflict: where a record lay that came later under the same id with another payload and was only warned of.';

create table public.inbox_passed (
    consumer text   collate "C" not null,
    key      text   collate "C" not null,
    version  bigint not null,
    primary key (consumer, key, version)
);
comment on table public.inbox_passed is 'Versions above their key''s watermark that need no handler: of types that the consumer does not handle, which came while an earlier version was missing. They close gaps. Removed when the watermark passes them.';
comment on table public.inbox_watermark is 'The version up to which a versioned consumer has applied or passed over all events of a key, or jumped where its handler declares whole state or an operator accepted a gap. Never purged: it is what keeps an old event from overwriting new state after its inbox row is gone.';

-- A discarded event closes the gap that it left.
create index dead_letter_discarded on public.dead_letter (consumer, key_start, version) where state = 'discarded';

alter table public.dead_letter
    add column key_null     boolean not null default false,
    add column payload_null boolean not null default false,
    add column record_ms    bigint;
comment on column public.dead_letter.headers is 'Array of [name, base64 value] in the record''s order, null for a value that is null: a header need not be text and may stand twice. A name that is not text stands as its replacement with its bytes behind the value: [name, base64 value, base64 name].';
comment on column public.dead_letter.key_null is 'The record had no key, which is not an empty one.';
comment on column public.dead_letter.payload_null is 'The record had no value, which is not an empty one.';
comment on column public.dead_letter.payload is 'The record''s value. Of records that could not be read (unreadable): the beginning of their batch, as it lay on the log.';
comment on column public.dead_letter.record_ms is 'The record''s timestamp, where record_time cannot hold it: milliseconds since 1970.';
comment on column public.dead_letter.code is 'Stable reason, such as schema_violation; group by this, never by the error text. version_gap and version_jump wait for an earlier event, parked_behind for a letter.';

-- +goose Down
alter table public.dead_letter drop column key_null, drop column payload_null, drop column record_ms;
drop index public.dead_letter_discarded;
drop table public.inbox_passed;
