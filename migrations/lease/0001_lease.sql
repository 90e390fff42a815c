-- +goose Up
create table lease (
    handler  text         not null check (handler <> ''),
    event_id varchar(255) not null check (event_id <> ''),
    state    text         not null default 'pending'
             check (state in ('pending', 'claimed', 'submitting', 'done', 'failed', 'uncertain')),
    attempts integer      not null default 0,
    doubts   integer      not null default 0,
    due_at   timestamptz  not null default clock_timestamp(),
    token    uuid,
    error    text,
    added_at timestamptz  not null default clock_timestamp(),
    ended_at timestamptz,
    primary key (handler, event_id),
    check (state not in ('claimed', 'submitting') or token is not null),
    check ((state in ('done', 'failed', 'uncertain')) = (ended_at is not null))
);
create index lease_open on lease (handler, state, due_at) where state <> 'done';
comment on table lease is 'One row per effect outside SQL that an event owes: written with the inbox row, carried out later by whoever holds the lease.';
comment on column lease.state is 'submitting is set right before the irreversible step: a lease that ends there leaves the outcome unknown.';
comment on column lease.due_at is 'On the database''s clock. Of a pending row its next attempt, of a claimed or submitting one the end of its lease.';
comment on column lease.token is 'Of the claim, new with each: repeated by every statement that moves the row on, so that who lost the lease changes nothing.';
comment on column lease.doubts is 'Attempts of which nobody knows whether they had their effect.';

-- +goose Down
drop table lease;
