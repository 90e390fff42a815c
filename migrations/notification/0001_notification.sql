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
    id         uuid        primary key,
    event_id   text        not null,
    template   text        not null,
    user_id    uuid        not null,
    recipient  text        not null,
    created_at timestamptz not null default clock_timestamp(),
    unique (event_id, template, recipient)
);
create index mail_user on mail (user_id);
comment on table mail is 'One row per mail somebody is owed. Written with the inbox row and with a lease, mail.<template> on the event, that says how far it is.';
comment on column mail.id is 'Also its Message-ID, the same in every attempt.';
comment on column mail.recipient is 'When it was owed. It is sent to the address that the contact has by then.';

-- +goose Down
drop table mail;
drop table contact;
