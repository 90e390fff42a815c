-- +goose Up

-- Services of earlier releases have made the table themselves, with the column or without it.
create table if not exists public.idempotency_key (
    scope       text        not null,
    key         text        not null,
    fingerprint bytea       not null,
    status      integer     not null,
    body        bytea       not null,
    created_at  timestamptz not null default clock_timestamp(),
    expires_at  timestamptz not null,
    primary key (scope, key)
);
alter table public.idempotency_key add column if not exists metadata jsonb;
create index if not exists idempotency_key_expires_at on public.idempotency_key (expires_at);
comment on table public.idempotency_key is 'Answers already given, committed with their changes, so that a retry gets the same one.';
comment on column public.idempotency_key.fingerprint is 'SHA-256 of the command: tells a retry from another request under the same key.';
comment on column public.idempotency_key.metadata is 'The command''s own, for operators and for its retries. Null: nothing. It holds no text of people.';
