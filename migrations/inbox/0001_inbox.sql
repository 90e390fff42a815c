-- +goose Up

-- Every name is qualified: an unexpected search_path must not make a second inbox that remembers nothing.
create table public.inbox (
    consumer     text         collate "C" not null,
    event_id     varchar(255) collate "C" not null,
    event_time   timestamptz  not null,
    event_type   text         not null,
    payload_hash bytea        not null,
    metadata     jsonb        not null default '{}',
    processed_at timestamptz  not null default clock_timestamp(),
    primary key (consumer, event_id, event_time)
) partition by range (event_time);
comment on table public.inbox is 'One row per event and consumer, written in the transaction of the effect: the row is why the effect happens once. Forgotten by dropping the partitions of whole days.';
comment on column public.inbox.event_id is 'Text, not uuid: a consumer accepts ids of any producer.';
comment on column public.inbox.event_time is 'A function of the id alone, so that one id has one place: the time inside a UUIDv7, else 1970-01-01.';
comment on column public.inbox.payload_hash is 'SHA-256 of the payload: tells a redelivery from another event that took the same id.';
comment on column public.inbox.metadata is 'Where the record lay (group, topic, partition, offset), its correlation id, when its transaction began by the clock of the process (processing_time), and its outcome where that is not applied.';

-- The partitions beside the days. Without a DEFAULT an event from the future could not be recorded at all; with a
-- partition per far day one wrong clock could make thousands of them.
create table public.inbox_foreign partition of public.inbox for values from (minvalue) to ('2000-01-01 00:00:00+00');
create table public.inbox_future partition of public.inbox default;
create index inbox_foreign_processed_at on public.inbox_foreign (processed_at);
comment on table public.inbox_foreign is 'Ids that carry no time. Forgotten by bounded deletes on processed_at.';
comment on table public.inbox_future is 'Events from beyond the days that have a partition. Moved to their day when it comes near.';

-- +goose StatementBegin
do $$
declare
    today date := (clock_timestamp() at time zone 'UTC')::date;
begin
    -- What is older than the installation has one partition: there is nothing processed from those days yet.
    execute format('create table public.inbox_past partition of public.inbox for values from (%L) to (%L)',
        '2000-01-01 00:00:00+00', today::timestamp at time zone 'UTC');
    for i in 0..1 loop -- the janitor goes on from here
        execute format('create table public.%I partition of public.inbox for values from (%L) to (%L)',
            'inbox_' || to_char(today + i, 'YYYYMMDD'),
            (today + i)::timestamp at time zone 'UTC', (today + i + 1)::timestamp at time zone 'UTC');
    end loop;
end
$$;
-- +goose StatementEnd

create table public.inbox_horizon (
    single         boolean     primary key default true check (single),
    remembers_from timestamptz not null default '2000-01-01 00:00:00+00'
);
comment on table public.inbox_horizon is 'Events before remembers_from may have been processed and forgotten, so they are never applied. It moves before anything is dropped, and never back.';
insert into public.inbox_horizon default values;

create table public.inbox_watermark (
    consumer text   collate "C" not null,
    key      text   collate "C" not null,
    version  bigint not null,
    primary key (consumer, key)
) with (fillfactor = 80);
comment on table public.inbox_watermark is 'The highest version that a versioned consumer has applied per key. Never purged: it is what keeps an old event from overwriting new state after its inbox row is gone.';

create table public.dead_letter (
    id              bigint       generated always as identity primary key,
    consumer        text         collate "C" not null,
    event_id        varchar(255) collate "C" not null,
    event_type      text         not null,
    key             bytea        not null,
    key_start       bytea        not null generated always as (substring(key, 1, 1024)) stored,
    version         bigint       not null default 0,
    -- the record as it came
    headers         jsonb        not null,
    payload         bytea        not null,
    consumer_group  text         not null default '',
    topic           text         not null,
    partition       integer      not null,
    record_offset   bigint       not null,
    record_time     timestamptz,
    -- what to replay instead, and who says so
    edited_headers  jsonb,
    edited_payload  bytea,
    edited_by       text         not null default '',
    edited_at       timestamptz,
    -- why it is here
    class           text         not null,
    code            text         not null,
    error           text         not null,
    attempts        integer      not null,
    first_failed_at timestamptz  not null,
    failed_at       timestamptz  not null default clock_timestamp(),
    -- what becomes of it
    state           text         not null default 'waiting' check (state in ('waiting', 'replayed', 'discarded')),
    holds           boolean      not null default false,
    remembered      boolean      not null default false,
    replays         integer      not null default 0,
    outcome         text         not null default '',
    settled_at      timestamptz
);
-- One per event. Another payload under the same id is another record, and must not be lost for the first one's sake.
create unique index dead_letter_event on public.dead_letter (consumer, event_id, sha256(payload));
-- Read with every event: a key whose record waits parks what comes after it. Empty in the normal case.
create index dead_letter_holds on public.dead_letter (consumer, key_start, version, id)
    where state = 'waiting' and holds;
-- The order of a replay.
create index dead_letter_waiting on public.dead_letter (consumer, key_start, version, id) where state = 'waiting';
comment on table public.dead_letter is 'The records a consumer gave up on, or parked behind one of their key, byte for byte, written in the transaction of that decision.';
comment on column public.dead_letter.event_id is 'The event id, or topic/partition/offset where the record carries none.';
comment on column public.dead_letter.key_start is 'What there is of the key in an index, which does not take any length. The key of an event is all there.';
comment on column public.dead_letter.version is 'The event''s version, 0 where it has none.';
comment on column public.dead_letter.headers is 'Array of [name, base64 value] in the record''s order: a header need not be text and may stand twice.';
comment on column public.dead_letter.class is 'parked: it has not failed itself, it waits for an earlier one of its key.';
comment on column public.dead_letter.code is 'Stable reason, such as schema_violation; group by this, never by the error text.';
comment on column public.dead_letter.holds is 'While it waits, later events of its key park behind it.';
comment on column public.dead_letter.remembered is 'Its id was taken in the inbox together with this row, so nobody else has applied it since: true also when the inbox has forgotten the id.';
comment on column public.dead_letter.replays is 'Replays that failed.';
comment on column public.dead_letter.outcome is 'Of the replay that settled it: applied, duplicate or stale.';

create table public.inbox_owner (
    consumer  text        collate "C" not null,
    topic     text        collate "C" not null,
    partition integer     not null,
    owner     text        not null,
    in_flight integer     not null,
    since     timestamptz not null default clock_timestamp(),
    primary key (consumer, topic, partition)
);
comment on table public.inbox_owner is 'A process writes its row when it takes a partition and removes it when it stops cleanly. A row of somebody else tells the next owner that up to in_flight events may have been what ended them.';

create table public.inbox_attempt (
    consumer      text        collate "C" not null,
    topic         text        collate "C" not null,
    partition     integer     not null,
    record_offset bigint      not null,
    attempts      integer     not null,
    last_at       timestamptz not null,
    primary key (consumer, topic, partition, record_offset)
);
comment on table public.inbox_attempt is 'Attempts at records that may have killed a process, written before the handler runs and outside its transaction. Empty but after an unclean end.';

create table public.inbox_janitor (
    single      boolean     primary key default true check (single),
    holder      text        not null default '',
    epoch       bigint      not null default 0,
    lease_until timestamptz not null default 'epoch',
    due_at      timestamptz not null default 'epoch',
    refused     boolean     not null default false
);
comment on column public.inbox_janitor.refused is 'The last round forgot nothing, because it might come again.';
comment on table public.inbox_janitor is 'Who tidies up, until when, and when it is due again; all on this server''s clock.';
insert into public.inbox_janitor default values;

-- +goose Down
drop table public.inbox_janitor;
drop table public.inbox_attempt;
drop table public.inbox_owner;
drop table public.dead_letter;
drop table public.inbox_watermark;
drop table public.inbox_horizon;
drop table public.inbox;
