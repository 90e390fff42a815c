-- +goose Up

-- Nullable: a relay of an earlier release takes over without setting it, and then differs from the epoch.
alter table public.outbox_cursor add column lock_epoch bigint;
comment on column public.outbox_cursor.lock_epoch is 'The epoch whose leader holds the advisory lock of that epoch on its session. If it is the present one and the lock is free, that session has ended, and a follower need not wait for the lease.';
