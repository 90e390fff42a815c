-- +goose Up
create table users (
    id            uuid        primary key,
    email         text        not null,
    email_key     text        not null unique,
    name          text        not null,
    status        text        not null check (status in ('pending_verification', 'verified')),
    version       bigint      not null check (version > 0),
    registered_at timestamptz not null,
    updated_at    timestamptz not null default clock_timestamp()
);
comment on table users is 'The write side. Its row is locked by every command on the user, which serialises the user''s events.';
comment on column users.email_key is 'The address in lower case: two spellings of one address are one person.';
comment on column users.version is 'How many events the user has caused; the version of the last one.';

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

create table profile (
    user_id     uuid        primary key,
    email       text        not null,
    name        text        not null,
    status      text        not null,
    version     bigint      not null,
    updated_at  timestamptz not null default clock_timestamp()
);
comment on table profile is 'The read side, built from the service''s own events alone: what GET /v1/customers/{id} answers.';

create table verification_mail (
    user_id uuid        primary key,
    mail_id text        not null,
    sent_at timestamptz not null
);
comment on table verification_mail is 'Apart from profile, because the two come from different topics and either may come first.';

-- +goose Down
drop table verification_mail;
drop table profile;
drop table idempotency_key;
drop table users;
