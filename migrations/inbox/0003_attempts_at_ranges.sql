-- +goose Up

-- A process of the version before this one, which may still run, knows single records: it writes rows without the new
-- columns and reads a range as its first record.
alter table public.inbox_attempt
    add column last_offset bigint,
    add column owner text collate "C";
comment on table public.inbox_attempt is 'Ranges of records in which something may end the process that handles it, written before the handlers run and outside their transaction. Empty but after an unclean end.';
comment on column public.inbox_attempt.record_offset is 'The first offset of the range.';
comment on column public.inbox_attempt.last_offset is 'The last one; null for a single record.';
comment on column public.inbox_attempt.attempts is 'Attempts at the range, or at one that it is a part of, that ended a process, and the one under way.';
comment on column public.inbox_attempt.owner is 'Of the partition when the range was last attempted as it is: such a range is halved before it runs again. Null for a half that has not been attempted by itself.';
comment on column public.inbox_owner.in_flight is 'How many events may have been under way, from the first one on that is not processed.';

-- +goose Down
comment on column public.inbox_owner.in_flight is null;
alter table public.inbox_attempt drop column owner, drop column last_offset;
