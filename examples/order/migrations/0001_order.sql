-- +goose Up
create table public.orders (
    id         uuid        primary key,
    version    bigint      not null,
    status     text        not null,
    email      text        not null,
    amount     bigint      not null check (amount > 0),
    currency   text        not null,
    placed_at  timestamptz not null,
    payment_id uuid
);
comment on table public.orders is 'One row per order, locked before each change. Version counts its events.';
comment on column public.orders.amount is 'In the minor unit of the currency.';
comment on column public.orders.payment_id is 'The payment that paid it. Any other one for the same order is to be refunded.';

create table public.idempotency_key (
    scope       text        not null,
    key         text        collate "C" not null,
    fingerprint bytea       not null,
    status      integer     not null,
    body        bytea       not null,
    created_at  timestamptz not null default clock_timestamp(),
    expires_at  timestamptz not null,
    primary key (scope, key)
);
create index idempotency_key_expires on public.idempotency_key (expires_at);
comment on table public.idempotency_key is 'The answers to commands, given again to a repetition of the request.';
