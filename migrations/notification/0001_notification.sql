-- +goose Up
create table contact (
    user_id    uuid        primary key,
    email      text        not null,
    name       text        not null,
    verified   boolean     not null default false,
    version    bigint      not null,
    updated_at timestamptz not null default clock_timestamp()
);
comment on table contact is 'Whom mail may be sent to, built from Customer''s events: this service never reads the other''s database.';

create table mail (
    id          uuid        primary key,
    event_id    text        not null,
    template    text        not null,
    user_id     uuid        not null,
    recipient   text        not null,
    name        text        not null,
    state       text        not null default 'pending'
                check (state in ('pending', 'claimed', 'submitting', 'sent', 'failed', 'uncertain')),
    attempts    integer     not null default 0,
    due_at      timestamptz not null default clock_timestamp(),
    lease_token uuid,
    lease_until timestamptz,
    error       text,
    created_at  timestamptz not null default clock_timestamp(),
    sent_at     timestamptz,
    unique (event_id, template, recipient)
);
create index mail_due on mail (due_at) where state in ('pending', 'claimed', 'submitting');
comment on table mail is 'One row per mail somebody is owed. Written with the inbox row, sent later by whoever claims it.';
comment on column mail.state is 'submitting is set right before the mail server may take the mail: a lease that expires there leaves the outcome unknown, and the mail uncertain.';
comment on column mail.lease_token is 'Repeated by every statement that moves the row on: a sender that lost its lease changes nothing.';
comment on column mail.lease_until is 'On the database''s clock: senders'' clocks may differ.';

create table mail_action (
    id         bigint generated always as identity primary key,
    mail_id    uuid        not null references mail,
    action     text        not null check (action in ('retry', 'mark_sent')),
    from_state text        not null,
    by         text        not null,
    reason     text        not null,
    at         timestamptz not null default clock_timestamp()
);
create index mail_action_mail on mail_action (mail_id);
comment on table mail_action is 'What operators did to mails, who and why: written in the transaction of the change.';

-- +goose Down
drop table mail_action;
drop table mail;
drop table contact;
