-- +goose Up

create table public.operator_action (
    id         bigint      generated always as identity primary key,
    at         timestamptz not null default clock_timestamp(),
    operator   text        not null,
    verb       text        not null,
    reason     text        not null default '',
    kind       text        collate "C" not null,
    subject    text        collate "C" not null default '',
    before     text        not null default '',
    after      text        not null default '',
    affected   bigint      not null default 1,
    detail     jsonb       not null default '{}'
);
create index operator_action_subject on public.operator_action (kind, subject, id);
comment on table public.operator_action is 'What people did to dead letters, mails and parked keys: one row per thing touched, written in the transaction of the change, never updated.';
comment on column public.operator_action.verb is 'What was done, such as replay, edit, discard, retry.';
comment on column public.operator_action.kind is 'What sort of thing was touched, such as dead_letter or mail; subject is its id, empty where many were touched at once.';
comment on column public.operator_action.before is 'The state before and after the change; both empty where a state says nothing.';
comment on column public.operator_action.detail is 'What else to know, such as an outcome. Never a payload or an address.';

-- +goose Down
drop table public.operator_action;
