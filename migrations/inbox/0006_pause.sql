-- +goose Up
create table public.inbox_pause (
    consumer  text        collate "C" primary key,
    paused_by text        not null,
    reason    text        not null,
    since     timestamptz not null default clock_timestamp()
);
comment on table public.inbox_pause is 'Consumers that an operator has paused: their instances hand no record to a handler while the row is there, across restarts.';

-- +goose Down
drop table public.inbox_pause;
