-- +goose Up
create table public.inbox_point (
    consumer    text   collate "C" not null,
    topic       text   collate "C" not null,
    partition   int    not null,
    next_offset bigint not null,
    time        bigint not null default 0,
    primary key (consumer, topic, partition)
) with (fillfactor = 50);
comment on table public.inbox_point is 'The offset behind the last record of a partition whose outcome this database has, and when the broker appended that record (ms; 0: none yet). It moves in the transaction of the outcome, so a database that went back knows where to read on.';

-- +goose Down
drop table public.inbox_point;
