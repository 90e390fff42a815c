-- +goose Up
-- Older binaries may not go on.

-- Effects have no order any more. No row is removed. A row that was done without being carried out is skipped now, and so
-- is a row that would have been: an effect of a higher version has begun for its key. The update writes those rows alone.
-- Building the index reads the table once, and keeps writers out for that long.
update lease
set state = 'skipped', error = format('superseded by an effect of version %s of its key', superseded_by)
where superseded_by is not null;
update lease l
set state = 'skipped', error = format('superseded by an effect of version %s of its key', w.version),
    token = null, ended_at = clock_timestamp()
from lease_watermark w
where w.handler = l.handler and w.key = l.key and w.version > l.version and l.state in ('pending', 'claimed');

drop index lease_done;
create index lease_ended on lease (handler, ended_at) where state in ('done', 'skipped');
drop table lease_watermark;
alter table lease drop column key, drop column version, drop column superseded_by;

-- +goose Down
alter table lease
    add column key           text collate "C",
    add column version       bigint,
    add column superseded_by bigint;
comment on column lease.key is 'Of effects that are owed in the order of a key: whose they are. Null: there is no order.';
comment on column lease.version is 'Of its event. The effect is skipped if one of a higher version has begun for the key.';
comment on column lease.superseded_by is 'Done without being carried out: an effect of this version had begun for the key.';
drop index lease_ended;
create index lease_done on lease (handler, ended_at) where state = 'done';

create table lease_watermark (
    handler text   not null,
    key     text   collate "C" not null,
    version bigint not null,
    primary key (handler, key)
) with (fillfactor = 80);
comment on table lease_watermark is 'The highest version of which an effect has begun per key. Never purged: it outlives the rows that moved it.';
