-- +goose Up
create table public.payment (
    id       uuid        primary key,
    order_id uuid        not null,
    amount   bigint      not null check (amount > 0),
    currency text        not null,
    taken_at timestamptz not null default clock_timestamp()
);
comment on table public.payment is 'What the simulator was told to take.';

-- +goose Down
drop table public.payment;
