-- +goose Up
-- Older binaries may not go on.

-- A broken record takes no id: a right event with the same id and payload has a dead letter of its own.
drop index public.dead_letter_event;
create unique index dead_letter_event on public.dead_letter (consumer, event_id, remembered, sha256(payload));

-- +goose Down
drop index public.dead_letter_event;
create unique index dead_letter_event on public.dead_letter (consumer, event_id, sha256(payload));
