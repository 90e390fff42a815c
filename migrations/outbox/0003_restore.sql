-- +goose Up
alter table public.outbox_cursor
    add column compared text,
    add column restored text;
comment on column public.outbox_cursor.compared is 'The start of the server, and the file of this table, when the numbers of the keys were last compared with what the broker holds. A restore changes one of them, whatever it brings back. The word new: nothing was published yet, so nothing can be forgotten.';
comment on column public.outbox_cursor.restored is 'Why nothing is published until an operator has confirmed: the broker holds events that this database does not know of. Null: nothing is wrong.';

update public.outbox_cursor set compared = 'new' where pg_sequence_last_value('public.outbox_position_seq') is null;

-- +goose Down
alter table public.outbox_cursor drop column compared, drop column restored;
