-- +goose Up
create table public.orders (
    id         uuid        primary key,
    version    bigint      not null,
    status     text        not null check (status in ('placed', 'paid', 'cancelled')),
    email      text        not null,
    amount     bigint      not null check (amount > 0),
    currency   text        not null,
    placed_at  timestamptz not null,
    pay_by     timestamptz not null,
    payment_id uuid,
    check ((status = 'paid') = (payment_id is not null))
);
comment on table public.orders is 'One row per order, locked before each change. Version counts its events.';
comment on column public.orders.amount is 'In the minor unit of the currency.';
comment on column public.orders.payment_id is 'The payment that paid it. Any other one for the same order is refunded.';

create table public.refund (
    payment_id uuid        primary key,
    order_id   uuid        not null references public.orders,
    reason     text        not null,
    due_at     timestamptz not null
);
comment on table public.refund is 'Payments that an order had no use for. The key has each said once, however often the payment is told.';

create table public.receipt (
    event_id       text        primary key,
    id             uuid        not null,
    order_id       uuid        not null references public.orders,
    correlation_id text        not null,
    created_at     timestamptz not null default clock_timestamp()
);
comment on table public.receipt is 'Receipts to be mailed, each owed for the payment''s event; how far it is says its row in lease.';

create table public.idempotency_key (
    scope       text        not null,
    key         text        not null,
    fingerprint bytea       not null,
    status      integer     not null,
    body        bytea       not null,
    created_at  timestamptz not null default clock_timestamp(),
    expires_at  timestamptz not null,
    primary key (scope, key)
);
create index idempotency_key_expires_at on public.idempotency_key (expires_at);
comment on table public.idempotency_key is 'Answers already given, committed with what they answer for, so that a retry gets the same one.';

-- +goose Down
drop table public.idempotency_key, public.receipt, public.refund, public.orders;
