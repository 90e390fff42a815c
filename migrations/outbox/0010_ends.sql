-- +goose Up
-- Older binaries may not go on.

-- Where each partition of the log ends. A leader that finds another end, or another record below it, looks at the log.
alter table public.outbox_cursor
    add column up_to bigint not null default 0,
    add column ends jsonb,
    add column looked_at text,
    add column refused text,
    add column confirmed text,
    add column database_back_at timestamptz,
    add column broker_back_at timestamptz;
comment on column public.outbox_cursor.up_to is 'The last position of the page that was stored before it was sent.';
comment on column public.outbox_cursor.ends is 'For each "topic/partition": end, the offset behind the last acknowledged record; time, when that was appended (ms); expected, the end when the open page is written; from, the position behind which rows are published again, absent if all is well. Null: no leader has looked at the log; the first one takes its ends as they are.';
comment on column public.outbox_cursor.looked_at is 'The cluster and the timeline on which a leader last looked at the log.';
comment on column public.outbox_cursor.refused is 'Why nothing is published until an operator confirms it; null: nothing is refused.';
comment on column public.outbox_cursor.confirmed is 'The text of the refusal that an operator has confirmed.';
comment on column public.outbox_cursor.database_back_at is 'When a leader last found that this database went back to an earlier state.';
comment on column public.outbox_cursor.broker_back_at is 'When a leader last found that the log lost records.';
update public.outbox_cursor set ends = '{}' where pg_sequence_last_value('public.outbox_position_seq') is null;

create table public.outbox_point (
    position bigint      primary key,
    ends     jsonb       not null,
    at       timestamptz not null default clock_timestamp()
);
comment on table public.outbox_point is 'Every row up to the position is acknowledged below these ends, and every record below them is of a row or of a lost event of this database. It stands while the record below an end has the time of that end.';
insert into public.outbox_point (position, ends)
select 0, '{}' where pg_sequence_last_value('public.outbox_position_seq') is null;

create table public.outbox_lost (
    topic       text   collate "C" not null,
    partition   int    not null,
    "offset"    bigint not null,
    event_id    text   collate "C" not null,
    event_type  text   not null,
    key         text   collate "C" not null,
    version     bigint not null,
    headers     jsonb  not null,
    payload     bytea  not null,
    appended_at timestamptz not null,
    found_at    timestamptz not null default clock_timestamp(),
    primary key (event_id, version)
);
create index outbox_lost_place on public.outbox_lost (topic, partition, key, version);
create index outbox_lost_record on public.outbox_lost (topic, partition, "offset", version, event_id);
comment on table public.outbox_lost is 'Events that are on the log and that this database does not have: it went back to an earlier state after it had published them. They stay valid for consumers, and are published again with the rows when the log has lost them.';

-- +goose Down
drop table public.outbox_lost;
drop table public.outbox_point;
alter table public.outbox_cursor
    drop column up_to, drop column ends, drop column looked_at, drop column refused, drop column confirmed,
    drop column database_back_at, drop column broker_back_at;
