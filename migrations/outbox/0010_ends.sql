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

-- +goose StatementBegin
create function public.outbox_renumber(topics text[], keys text[], lows bigint[], highs bigint[], above bigint) returns void
language plpgsql security definer set search_path = '' as $$
begin
    -- Waits for the writers of these keys. The next statement sees their rows.
    insert into public.outbox_key as k (topic, key, version)
    select l.topic, l.key, 0 from unnest(topics, keys) as l (topic, key)
    order by l.topic collate "C", l.key collate "C"
    on conflict (topic, key) do update set version = k.version;
    update public.outbox o set version = o.version + l.high - l.low + 1
    from unnest(topics, keys, lows, highs) as l (topic, key, low, high), public.outbox_cursor c
    where o.topic = l.topic and o.key = l.key and o.version >= l.low and o.position > above
        and not pg_catalog.pg_visible_in_snapshot(o.xid, c.done)
        and not coalesce(o.position <= c.up_to and pg_catalog.pg_visible_in_snapshot(o.xid, c.win), false);
    update public.outbox o set version = o.version + l.high - l.low + 1
    from unnest(topics, keys, lows, highs) as l (topic, key, low, high), public.outbox_held h, public.outbox_cursor c
    where h.topic = l.topic and h.key = l.key and o.position = h.position and o.version >= l.low
        and (o.position <= above or pg_catalog.pg_visible_in_snapshot(o.xid, c.done)
            or coalesce(o.position <= c.up_to and pg_catalog.pg_visible_in_snapshot(o.xid, c.win), false));
    update public.outbox_key k
    set version = greatest(case when k.version >= l.low then k.version + l.high - l.low + 1 else 0 end, l.high)
    from unnest(topics, keys, lows, highs) as l (topic, key, low, high)
    where k.topic = l.topic and k.key = l.key;
end $$;
-- +goose StatementEnd
comment on function public.outbox_renumber is 'Gives the rows that no page has had, held rows and the keys versions above those of lost events: of each key the lowest and the highest. Rows that no page has had lie above a position. Called in one transaction with the insert into outbox_lost.';
revoke all on function public.outbox_renumber from public;

-- +goose Down
drop function public.outbox_renumber;
drop table public.outbox_lost;
drop table public.outbox_point;
alter table public.outbox_cursor
    drop column up_to, drop column ends, drop column looked_at, drop column refused, drop column confirmed,
    drop column database_back_at, drop column broker_back_at;
