-- +goose Up

-- Every name is qualified: an unexpected search_path must not make a second outbox that no relay reads. Names and keys
-- are compared byte by byte: cheaper, and no index is out of order after an upgrade of the C library. The table of events
-- has no check constraints: the server parses them anew for each statement.
create table public.outbox (
    xid         xid8        not null default pg_current_xact_id(),
    position    bigint      not null generated always as identity (cache 1 no cycle),
    event_id    uuid        not null,
    event_type  text        not null,
    source      text        not null,
    topic       text        collate "C" not null,
    key         text        collate "C" not null,
    version     bigint      not null,
    data_schema text,
    occurred_at timestamptz not null,
    headers     jsonb,
    payload     bytea       not null,
    primary key (position)
) partition by range (position);
comment on table public.outbox is 'Events of committed transactions, append-only: nothing is updated or deleted per event, whole partitions are dropped once published and old enough. Write through the outbox package alone; never supply xid or position, never insert into a partition, never touch the sequence.';
comment on column public.outbox.xid is 'The writing transaction. It stands before position because defaults are evaluated in column order: the id must be taken before the number, or a row can hide below a landmark and is never published.';
comment on column public.outbox.position is 'Order of publishing. Cache 1: a session that holds a block of numbers would number later rows lower. Numbers of rolled back transactions stay unused.';
comment on column public.outbox.key is 'The aggregate: record key and ce_subject. Order is kept per topic and key.';
comment on column public.outbox.version is 'The count of this key''s events in this topic: 1, 2, 3 ... without gaps, taken under the lock of its outbox_key row.';
comment on column public.outbox.headers is 'Only what no other column says, such as traceparent; null for most rows, so that reading needs no JSON.';
comment on column public.outbox.payload is 'bytea, not jsonb: the broker gets the bytes that were checked, not another spelling of them.';

-- The first partitions; the relay's leader goes on from the highest bound.
create table public.outbox_1       partition of public.outbox for values from (1) to (1000001);
create table public.outbox_1000001 partition of public.outbox for values from (1000001) to (2000001);
create table public.outbox_2000001 partition of public.outbox for values from (2000001) to (3000001);
create table public.outbox_3000001 partition of public.outbox for values from (3000001) to (4000001);

create table public.outbox_key (
    topic   text   collate "C" not null,
    key     text   collate "C" not null,
    version bigint not null,
    primary key (topic, key)
) with (fillfactor = 80);
comment on table public.outbox_key is 'The lock and the counter of each key. A writer locks the row, takes its number and inserts, in that order: so the later event of a key is inserted after the earlier one committed. A row per key and topic, because a copy of an event in another topic must not leave a gap in this one. Never purged.';

create table public.outbox_cursor (
    name        text        primary key,
    -- who leads
    epoch       bigint      not null default 0,
    leader      text        not null default '',
    lease_until timestamptz not null default 'epoch',
    -- what is published
    generation  bigint      not null default 0,
    sysid       bigint,
    done        pg_snapshot not null default '3:3:',
    head        bigint      not null default 0,
    win         pg_snapshot,
    win_head    bigint,
    win_pos     bigint,
    mark_x      xid8[]      not null default '{0}',
    mark_h      bigint[]    not null default '{0}',
    base        bigint      not null default 0,
    -- what a restore into another cluster left to publish
    old_done    pg_snapshot,
    old_head    bigint,
    old_win     pg_snapshot,
    old_win_pos bigint,
    old_limit   bigint,
    old_pos     bigint
) with (fillfactor = 50);
comment on table public.outbox_cursor is 'One row: who may publish and what is published. Every change repeats epoch and generation, so that whoever is not the leader any more changes nothing.';
comment on column public.outbox_cursor.epoch is 'Raised by each take-over.';
comment on column public.outbox_cursor.lease_until is 'On this database''s clock, never on a process''s.';
comment on column public.outbox_cursor.generation is 'Raised by each change of the window: a change that reached the server although its sender was told otherwise makes the next one fail.';
comment on column public.outbox_cursor.sysid is 'The cluster whose transaction ids the stored ones are. Another cluster means a restore: see rebase.go.';
comment on column public.outbox_cursor.done is 'All rows visible in this snapshot are published (or held, see outbox_held).';
comment on column public.outbox_cursor.head is 'The sequence head when done was taken: rows above it are not in done, whatever their xid says after a restore.';
comment on column public.outbox_cursor.win is 'The open window: rows visible here and not in done are being published. Stored before the first of them is sent: the commit makes the writers'' commits durable, and a restart goes on in the same window.';
comment on column public.outbox_cursor.win_pos is 'The window is published up to here.';
comment on column public.outbox_cursor.mark_x is 'Landmarks, with mark_h: the head was read before the transaction id was taken, so a transaction with a higher id inserts above that head.';
comment on column public.outbox_cursor.base is 'Rows up to here were inserted before the last restore: their transaction ids mean nothing in this cluster.';
insert into public.outbox_cursor (name, sysid) select 'relay', system_identifier from pg_control_system();

create table public.outbox_parked (
    topic     text        collate "C" not null,
    key       text        collate "C" not null,
    reason    text        not null,
    permanent boolean     not null,
    attempts  integer     not null default 1,
    parked_at timestamptz not null default clock_timestamp(),
    retry_at  timestamptz,
    primary key (topic, key)
);
comment on table public.outbox_parked is 'Keys of which a record could not be published. The rest goes on without them.';
comment on column public.outbox_parked.permanent is 'The broker will never take the record as it is: somebody has to look.';
comment on column public.outbox_parked.retry_at is 'When the leader tries again. Null: not before somebody releases the key.';

create table public.outbox_held (
    topic     text   collate "C" not null,
    key       text   collate "C" not null,
    position  bigint not null,
    primary key (topic, key, position)
);
create index outbox_held_position on public.outbox_held (position);
comment on table public.outbox_held is 'The rows of parked keys that a window has passed: published in this order after the release. Written in the transaction that moves the cursor past them, so that nothing is lost in between; keeps their partition from being dropped.';

create table public.outbox_discarded (
    position bigint primary key
);
comment on table public.outbox_discarded is 'Held rows that somebody has given up: the cursor has passed them and they were never published, so they are not republished either. Forgotten with their partition.';

create table public.outbox_partition (
    upper_bound  bigint      primary key,
    published_at timestamptz not null default clock_timestamp()
);
comment on table public.outbox_partition is 'Since when a partition is known to be wholly published: its retention counts from here, on this database''s clock, not from business times.';

create table public.outbox_topic (
    topic      text    collate "C" primary key,
    partitions integer not null
);
comment on table public.outbox_topic is 'The partition counts of the topics as first seen. Another count would send a key to another partition, past its own earlier events.';
