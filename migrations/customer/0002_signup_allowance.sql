-- +goose Up
create table signup_allowance (
    id         bytea       primary key,
    used_until timestamptz not null
);
create index signup_allowance_used_until on signup_allowance (used_until);
comment on table signup_allowance is 'How much of its sign-ups a mailbox or a client has used. A row whose time is past says nothing and is deleted.';
comment on column signup_allowance.id is 'A keyed hash of the mailbox or of the client''s address: neither is stored.';
comment on column signup_allowance.used_until is 'Each sign-up moves it ahead by its share of the period; one that would move it further than the period is refused.';

-- +goose Down
drop table signup_allowance;
