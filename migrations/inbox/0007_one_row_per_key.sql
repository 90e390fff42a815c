-- +goose Up
-- Older binaries may not go on.

-- One row per key of an ordered consumer. A transaction on the key locks it first.
alter table public.inbox_watermark rename to inbox_key;
alter index public.inbox_watermark_pkey rename to inbox_key_pkey;
alter table public.inbox_key add column parked_from bigint;
create index inbox_key_parked on public.inbox_key (consumer, key) where parked_from is not null;
comment on table public.inbox_key is 'How far an ordered consumer is in each key. Never purged: it keeps an old event from overwriting new state after its inbox row is gone.';
comment on column public.inbox_key.version is 'The version that the key has reached. Redeliveries of it and of lower ones are stale.';
comment on column public.inbox_key.parked_from is 'The lowest version that waits as a dead letter and holds the key: later events park behind it. Null: none.';

-- A version that needed no handler and came too early was a row of inbox_passed. Now it is a parked event like any
-- other: it is resumed in its turn, and counts.
insert into public.dead_letter (consumer, event_id, event_type, key, version, headers, payload, topic, partition,
    record_offset, class, code, error, attempts, first_failed_at, holds)
select p.consumer, e.id, e.type, convert_to(p.key, 'UTF8'), p.version, (
        select jsonb_agg(jsonb_build_array(h.name, translate(encode(convert_to(h.value, 'UTF8'), 'base64'), E'\n', '')))
        from (values ('ce_id', e.id), ('ce_type', e.type), ('ce_source', '/migration'), ('ce_specversion', '1.0'),
            ('ce_subject', p.key), ('ce_aggregateversion', p.version::text), ('ce_time', '2026-11-27T00:00:00Z')
        ) as h (name, value)
    ), '{}', '', 0, 0, 'parked', 'version_gap', 'an earlier version of the key is missing', 1, clock_timestamp(), true
from public.inbox_passed p
join public.inbox_key k on k.consumer = p.consumer and k.key = p.key and k.version < p.version
cross join lateral (values (
    'passed/' || md5(p.key) || '/' || p.version, 'twinbox.version-without-handler.v1'
)) as e (id, type);
drop table public.inbox_passed;

insert into public.inbox_key (consumer, key, version, parked_from)
select d.consumer, convert_from(d.key_start, 'UTF8'), 0, min(d.version)
from public.dead_letter d where d.state = 'waiting' and d.holds group by 1, 2
on conflict (consumer, key) do update set parked_from = excluded.parked_from;

-- A row of the inbox means that the writes of the handler are committed. What is a dead letter has none.
delete from public.inbox i using public.dead_letter d
where i.consumer = d.consumer and i.event_id = d.event_id and d.remembered and d.state <> 'replayed'
    and i.metadata ->> 'outcome' in ('gap', 'parked', 'dead');
comment on table public.inbox is 'One row per event and consumer, written in the transaction of the effect: the row means that the effect is committed. Forgotten by dropping the partitions of whole days.';
comment on column public.inbox.metadata is 'Where the record lay (group, topic, partition, offset), its correlation id, when its transaction began by the clock of the process (processing_time), how long its handler ran (processing_time_ms), and what the handler put there (caller). An outcome stands in rows of the first edition alone: applied or stale.';

alter table public.dead_letter drop column key_null, drop column payload_null, drop column record_ms;
create index dead_letter_parked on public.dead_letter (consumer, key_start, version, id)
    where state = 'waiting' and class = 'parked';
comment on column public.dead_letter.headers is 'Array of [name, base64 value] in the record''s order: a header need not be text and may stand twice. A name that is not text stands as its replacement, with its bytes behind the value: [name, base64 value, base64 name].';
comment on column public.dead_letter.remembered is 'Its event was new when it was stored. While the dead letter is there no other transaction applies the event, also when the inbox has forgotten that time.';
comment on column public.dead_letter.code is 'Stable reason, such as schema_violation; group by this, never by the error text. version_gap waits for an earlier event, parked_behind for an earlier dead letter of the key.';

alter table public.inbox_owner drop column in_flight;
comment on table public.inbox_owner is 'A process writes its row when it takes a partition and removes it when it stops cleanly. A row of another process tells the next owner that this one died, perhaps of a record.';

drop table public.inbox_attempt;
create table public.inbox_attempt (
    consumer     text        collate "C" not null,
    topic        text        collate "C" not null,
    partition    integer     not null,
    first_offset bigint      not null,
    last_offset  bigint      not null,
    attempts     integer     not null,
    last_at      timestamptz not null default clock_timestamp(),
    primary key (consumer, topic, partition, first_offset)
);
comment on table public.inbox_attempt is 'Attempts at records that may end the process that handles them, written before the handlers run and outside their transaction. Empty but after an unclean end.';

drop table public.inbox_position;
