-- +goose Up

-- A service that serves has no right to create, alter, lock or drop tables. What its relay needs of that it has a function
-- for, which runs with the rights of the tables' owner. The caller sets its own lock_timeout.

-- +goose StatementBegin
create function public.outbox_create_partition(lower_bound bigint, upper_bound bigint) returns void
language plpgsql security definer set search_path = '' as $$
begin
    -- The table first, attached second: "create table ... partition of" would lock the outbox against its writers.
    execute format('create table public.%I (like public.outbox including defaults including constraints'
        ' including storage including compression)', 'outbox_' || lower_bound);
    execute format('alter table public.outbox attach partition public.%I for values from (%s) to (%s)',
        'outbox_' || lower_bound, lower_bound, upper_bound);
end $$;
-- +goose StatementEnd
comment on function public.outbox_create_partition is 'Adds the partition of the positions from lower_bound to upper_bound, the latter not included.';

-- +goose StatementBegin
create function public.outbox_drop_partition(partition text) returns void
language plpgsql security definer set search_path = '' as $$
declare
    bounds text[];
begin
    select regexp_match(pg_get_expr(c.relpartbound, c.oid), 'FROM \(''?(-?\d+)''?\) TO \(''?(-?\d+)''?\)') into bounds
    from pg_catalog.pg_inherits i
    join pg_catalog.pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'public.outbox'::regclass and c.relname = partition;
    if bounds is null then
        raise exception '% is no partition of the outbox', partition using errcode = 'undefined_table';
    end if;
    if not exists (select from public.outbox_partition p where p.upper_bound = bounds[2]::bigint) then
        raise exception 'partition % is not known to be wholly published', partition using errcode = 'object_in_use';
    end if;
    execute format('drop table public.%I', partition);
    delete from public.outbox_partition p where p.upper_bound = bounds[2]::bigint;
    delete from public.outbox_discarded d where d.position >= bounds[1]::bigint and d.position < bounds[2]::bigint;
end $$;
-- +goose StatementEnd
comment on function public.outbox_drop_partition is 'Drops a partition that outbox_partition notes as wholly published, with what is noted of its rows.';

-- +goose StatementBegin
create function public.outbox_lock_writers() returns void
language plpgsql security definer set search_path = '' as $$
begin
    lock table public.outbox in share row exclusive mode;
end $$;
-- +goose StatementEnd
comment on function public.outbox_lock_writers is 'Keeps writers out until the transaction ends, and waits for those that have written.';

revoke all on function public.outbox_create_partition, public.outbox_drop_partition, public.outbox_lock_writers from public;

-- +goose Down
drop function public.outbox_create_partition, public.outbox_drop_partition, public.outbox_lock_writers;
