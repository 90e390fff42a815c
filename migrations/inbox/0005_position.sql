-- +goose Up

-- How far a consumer is belongs to the database with its effects: the group's offsets do not go back when it is restored.
create table public.inbox_position (
    consumer    text    collate "C" not null,
    topic       text    collate "C" not null,
    partition   integer not null,
    next_offset bigint  not null,
    primary key (consumer, topic, partition)
);
comment on table public.inbox_position is 'The offset of the next record of each partition, stored before it is committed to the group, about once a second. Where it is behind the group''s, this database was restored, and reading begins here.';

-- +goose Down
drop table public.inbox_position;
