-- +goose Up

-- A service that serves has no right to create, alter or drop tables; its janitor needs two such changes and has a function
-- for each, which runs with the rights of the tables' owner. The caller sets its own lock_timeout.

-- +goose StatementBegin
create function public.inbox_create_day(day timestamptz, most_moved bigint) returns boolean
language plpgsql security definer set search_path = '' as $$
declare
    following constant timestamptz := day + interval '24 hours';
    name constant text := 'inbox_' || to_char(day at time zone 'UTC', 'YYYYMMDD');
begin
    if day <> date_trunc('day', day at time zone 'UTC') at time zone 'UTC' then
        raise exception '% is not the beginning of a day', day using errcode = 'invalid_parameter_value';
    end if;
    -- The table first, attached second: "create table ... partition of" would lock the whole inbox, attaching locks
    -- inbox_future alone. The rows of that day, from clocks that were ahead, lie there and go along.
    lock table public.inbox_future in access exclusive mode;
    if (select count(*) from (select from public.inbox_future f where f.event_time >= day and f.event_time < following
            limit most_moved + 1) as found) > most_moved then
        return false;
    end if;
    execute format('create table public.%I (like public.inbox including defaults including constraints'
        ' including storage including comments)', name);
    execute format('with moved as (delete from public.inbox_future f where f.event_time >= $1 and f.event_time < $2'
        ' returning *) insert into public.%I select * from moved', name) using day, following;
    execute format('alter table public.inbox attach partition public.%I for values from (%L) to (%L)', name, day,
        following);
    return true;
end $$;
-- +goose StatementEnd
comment on function public.inbox_create_day is 'Adds the partition of a day, in UTC. False, and nothing is done, if more than most_moved rows would have to move into it.';

-- +goose StatementBegin
create function public.inbox_drop_day(partition text) returns void
language plpgsql security definer set search_path = '' as $$
declare
    upper_bound timestamptz;
begin
    select (regexp_match(pg_get_expr(c.relpartbound, c.oid), 'TO \(''([^'']+)''\)'))[1]::timestamptz into upper_bound
    from pg_catalog.pg_inherits i
    join pg_catalog.pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'public.inbox'::regclass and c.relname = partition;
    if upper_bound is null then
        raise exception '% is no day of the inbox', partition using errcode = 'undefined_table';
    end if;
    if upper_bound > (select h.remembers_from from public.inbox_horizon h) then
        raise exception 'partition % is not forgotten yet', partition using errcode = 'object_in_use';
    end if;
    execute format('drop table public.%I', partition);
end $$;
-- +goose StatementEnd
comment on function public.inbox_drop_day is 'Drops a day that lies wholly before the horizon.';

revoke all on function public.inbox_create_day, public.inbox_drop_day from public;

-- +goose Down
drop function public.inbox_create_day, public.inbox_drop_day;
