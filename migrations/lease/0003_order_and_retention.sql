-- +goose Up
alter table lease
    add column key           text collate "C",
    add column version       bigint,
    add column superseded_by bigint;
comment on column lease.key is 'Of effects that are owed in the order of a key: whose they are. Null: there is no order.';
comment on column lease.version is 'Of its event. The effect is skipped if one of a higher version has begun for the key.';
comment on column lease.superseded_by is 'Done without being carried out: an effect of this version had begun for the key.';
create index lease_done on lease (handler, ended_at) where state = 'done';

create table lease_watermark (
    handler text   not null,
    key     text   collate "C" not null,
    version bigint not null,
    primary key (handler, key)
) with (fillfactor = 80);
comment on table lease_watermark is 'The highest version of which an effect has begun per key. Never purged: it outlives the rows that moved it.';

-- +goose Down
drop table lease_watermark;
drop index lease_done;
alter table lease drop column key, drop column version, drop column superseded_by;
