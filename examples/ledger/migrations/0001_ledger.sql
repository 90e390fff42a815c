-- +goose Up
create table account (
    id         uuid        primary key,
    currency   text        not null,
    balance    bigint      not null check (balance between 0 and 9007199254740991),
    version    bigint      not null check (version > 0),
    opened_at  timestamptz not null,
    updated_at timestamptz not null default clock_timestamp()
) with (fillfactor = 90);
comment on table account is 'The write side. A command reads its row without a lock and writes it only at the version that it has read.';
comment on column account.balance is 'In the currency''s minor unit. The rule is the domain''s; the check is there for what goes past it.';
comment on column account.version is 'How many events the account has caused; the version of the last one.';

create table idempotency_key (
    scope       text        not null,
    key         text        not null,
    fingerprint bytea       not null,
    status      integer     not null,
    body        bytea       not null,
    created_at  timestamptz not null default clock_timestamp(),
    expires_at  timestamptz not null,
    primary key (scope, key)
);
create index idempotency_key_expires_at on idempotency_key (expires_at);
comment on table idempotency_key is 'Answers already given, committed with what they answer for, so that a retry gets the same one.';
comment on column idempotency_key.fingerprint is 'SHA-256 of the command as understood: tells a retry from another request under the same key.';

create table account_balance (
    account_id uuid        primary key,
    currency   text        not null,
    balance    bigint      not null check (balance between 0 and 9007199254740991),
    version    bigint      not null,
    as_of      timestamptz not null
) with (fillfactor = 90);
comment on table account_balance is 'The read side, built from the service''s own events alone: what GET /v1/accounts/{id} answers.';
comment on column account_balance.as_of is 'The business time of the event at this version.';

-- +goose Down
drop table account_balance;
drop table idempotency_key;
drop table account;
