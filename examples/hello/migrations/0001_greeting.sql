-- +goose Up
create table public.greeting (
    id      uuid        primary key,
    text    text        not null,
    said_at timestamptz not null
);
comment on table public.greeting is 'What was said to whom.';

-- +goose Down
drop table public.greeting;
