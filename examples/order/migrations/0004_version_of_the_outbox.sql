-- +goose Up
-- Older binaries may not go on.
alter table public.orders drop column version;
comment on table public.orders is 'One row per order. A change first locks the order''s row in outbox_key, which holds its version.';
