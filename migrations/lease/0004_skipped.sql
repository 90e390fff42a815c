-- +goose Up

-- A new state: an effect that is rightly not carried out. An earlier release neither writes nor purges such rows.

-- +goose StatementBegin
create or replace function lease_is_sound(handler text, event_id text, state text, token uuid, ended_at timestamptz)
returns boolean language plpgsql immutable as $$
begin
    return handler <> '' and event_id <> '' and case
        when state = 'pending' then ended_at is null
        when state in ('claimed', 'submitting') then token is not null and ended_at is null
        when state in ('done', 'failed', 'skipped', 'uncertain') then ended_at is not null
        else false
    end;
end $$;
-- +goose StatementEnd
comment on column lease.error is 'The reason of the last failed attempt, or why the effect is skipped.';

-- +goose Down
comment on column lease.error is null;
update lease set state = 'failed' where state = 'skipped';
-- +goose StatementBegin
create or replace function lease_is_sound(handler text, event_id text, state text, token uuid, ended_at timestamptz)
returns boolean language plpgsql immutable as $$
begin
    return handler <> '' and event_id <> '' and case
        when state = 'pending' then ended_at is null
        when state in ('claimed', 'submitting') then token is not null and ended_at is null
        when state in ('done', 'failed', 'uncertain') then ended_at is not null
        else false
    end;
end $$;
-- +goose StatementEnd
