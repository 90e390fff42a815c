-- +goose Up
-- Older binaries may not go on.
alter table account drop column version;
comment on table account is 'The write side. A command reads its row without a lock, together with the version in outbox_key, and writes it behind the event of the next version.';
