-- +goose Up
-- Older binaries may not go on.
alter table users drop column version;
comment on table users is 'The write side. A command first locks the user''s row in outbox_key. That row holds the version, and it puts the user''s events in one order.';
