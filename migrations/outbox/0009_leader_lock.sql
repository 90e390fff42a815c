-- +goose Up
-- Older binaries may not go on.

-- The leader holds an advisory lock on its session. The cursor keeps no lease and no generation any more.
alter table public.outbox_cursor
    add column paused_at timestamptz,
    add column paused_by text,
    add column paused_for text;
comment on table public.outbox_cursor is 'One row: which rows are published, and by which relay. Every change repeats the epoch, so a relay that does not lead any more changes nothing.';
comment on column public.outbox_cursor.epoch is 'Raised by each leadership.';
comment on column public.outbox_cursor.sysid is 'The cluster whose transaction ids the rows have: see outbox_adopt_cluster.';
comment on column public.outbox_cursor.head is 'The highest head of the sequence that a relay has seen. A lower one later means that the sequence was set back.';
comment on column public.outbox_cursor.win is 'The open window: rows that are visible here and not in done are being published. Stored before a page of it is sent.';
comment on column public.outbox_cursor.paused_at is 'Since when an operator keeps the relay from publishing; null: it publishes.';

-- Transaction ids of rows from before a restore mean nothing here. Published rows get one that every snapshot sees, the
-- others one that the next window sees.
update public.outbox o
set xid = case when c.old_done is null or o.position <= c.old_pos
    or o.position <= c.old_head and pg_visible_in_snapshot(o.xid, c.old_done)
    or coalesce(o.position <= c.old_win_pos and pg_visible_in_snapshot(o.xid, c.old_win), false)
    then '0'::xid8 else pg_current_xact_id() end
from public.outbox_cursor c
where o.position <= c.base;
update public.outbox_cursor set mark_x = '{0}', mark_h = '{0}' where base > 0;

alter table public.outbox_cursor
    drop column lease_until, drop column generation, drop column lock_epoch, drop column base, drop column compared,
    drop column restored, drop column win_head, drop column old_done, drop column old_head, drop column old_win,
    drop column old_win_pos, drop column old_limit, drop column old_pos;

-- Every parked key is tried again from time to time.
update public.outbox_parked set retry_at = clock_timestamp() where retry_at is null;
alter table public.outbox_parked alter column retry_at set not null, alter column retry_at set default clock_timestamp();
comment on column public.outbox_parked.permanent is 'The broker refused the record as it is: probably somebody has to discard it.';
comment on column public.outbox_parked.retry_at is 'When the leader tries again.';

drop table public.outbox_topic;
drop function public.outbox_lock_writers;

-- +goose StatementBegin
create function public.outbox_adopt_cluster() returns void
language plpgsql security definer set search_path = '' as $$
declare
    mine  xid8 := pg_catalog.pg_current_xact_id();
    first bigint;
    taken pg_catalog.pg_snapshot;
begin
    -- Longer than deadlock_timeout, after which the server cancels an autovacuum that holds the lock.
    perform pg_catalog.set_config('lock_timeout', '3s', true);
    lock table public.outbox in share row exclusive mode;
    -- This transaction's rows belong to the next window: the snapshot must show it as running.
    taken := pg_catalog.pg_current_snapshot();
    if mine < pg_catalog.pg_snapshot_xmax(taken) then
        taken := (
            select pg_catalog.format('%s:%s:%s', pg_catalog.min(x), pg_catalog.pg_snapshot_xmax(taken),
                pg_catalog.string_agg(x::text, ',' order by x))::pg_catalog.pg_snapshot
            from (select mine as x union select pg_catalog.pg_snapshot_xip(taken)) running);
    end if;
    -- Published rows first: the id of one may be the very id that the others get. After an upgrade of the server their
    -- ids are old enough and stay.
    update public.outbox o set xid = '0'
    from public.outbox_cursor c
    where o.xid >= pg_catalog.pg_snapshot_xmin(taken)
        and (o.position <= c.head and pg_catalog.pg_visible_in_snapshot(o.xid, c.done)
            or coalesce(o.position <= c.win_pos and pg_catalog.pg_visible_in_snapshot(o.xid, c.win), false));
    with waiting as (
        update public.outbox o set xid = mine
        from public.outbox_cursor c
        where not (o.position <= c.head and pg_catalog.pg_visible_in_snapshot(o.xid, c.done)
            or coalesce(o.position <= c.win_pos and pg_catalog.pg_visible_in_snapshot(o.xid, c.win), false))
        returning o.position
    )
    select min(position) into first from waiting;
    update public.outbox_cursor
    set sysid = (select system_identifier from pg_catalog.pg_control_system()), done = taken,
        win = null, win_pos = null, mark_x = '{0}',
        mark_h = array[least(first - 1, coalesce(pg_catalog.pg_sequence_last_value('public.outbox_position_seq'), 0))];
end $$;
-- +goose StatementEnd
comment on function public.outbox_adopt_cluster is 'For a database that was restored into another cluster, where stored transaction ids mean nothing: gives published rows an id that every snapshot sees, and the others the id of this transaction. Reads every row, writes those whose ids mislead, and keeps writers out for that long.';

-- +goose StatementBegin
create function public.outbox_repair_sequence(at_least bigint) returns bigint
language plpgsql security definer set search_path = '' as $$
declare
    highest bigint := greatest(at_least, (select max(position) from public.outbox));
begin
    if coalesce(pg_catalog.pg_sequence_last_value('public.outbox_position_seq'), 0) < highest then
        perform pg_catalog.setval('public.outbox_position_seq', highest);
    end if;
    return coalesce(pg_catalog.pg_sequence_last_value('public.outbox_position_seq'), 0);
end $$;
-- +goose StatementEnd
comment on function public.outbox_repair_sequence is 'Sets the sequence of positions above every position in the table and at least to a number, if it is lower. Returns its value.';

revoke all on function public.outbox_adopt_cluster, public.outbox_repair_sequence from public;
