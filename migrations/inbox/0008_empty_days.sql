-- +goose Up
-- Older binaries may not go on.

-- An advisory lock lets one janitor work at a time.
drop table public.inbox_janitor;

comment on table public.inbox_horizon is 'Events before remembers_from may have been processed and forgotten, so they are never applied. It moves before a day with events is dropped, and never back. It follows two clocks and the days that hold events: no single clock moves it.';

-- +goose StatementBegin
create or replace function public.inbox_drop_day(partition text) returns void
language plpgsql security definer set search_path = '' as $$
declare
    upper_bound timestamptz;
    holds_events boolean;
begin
    select (regexp_match(pg_get_expr(c.relpartbound, c.oid), 'TO \(''([^'']+)''\)'))[1]::timestamptz into upper_bound
    from pg_catalog.pg_inherits i
    join pg_catalog.pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'public.inbox'::regclass and c.relname = partition;
    if upper_bound is null then
        raise exception '% is no day of the inbox', partition using errcode = 'undefined_table';
    end if;
    if upper_bound > (select h.remembers_from from public.inbox_horizon h) then
        -- The lock comes before the look: no transaction can add a row between the two.
        lock table only public.inbox in access exclusive mode;
        execute format('select exists (select from public.%I)', partition) into holds_events;
        if holds_events then
            raise exception 'partition % is not forgotten yet', partition using errcode = 'object_in_use';
        end if;
    end if;
    execute format('drop table public.%I', partition);
end $$;
-- +goose StatementEnd
comment on function public.inbox_drop_day is 'Drops a day that lies wholly before the horizon, or that is empty.';

-- +goose Down
-- +goose StatementBegin
create or replace function public.inbox_drop_day(partition text) returns void
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
create table public.inbox_janitor (
    single      boolean     primary key default true check (single),
    holder      text        not null default '',
    epoch       bigint      not null default 0,
    lease_until timestamptz not null default 'epoch',
    due_at      timestamptz not null default 'epoch',
    refused     boolean     not null default false
);
insert into public.inbox_janitor default values;
