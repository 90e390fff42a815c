-- +goose Up

-- The rules of 0001, in one function. The server parses and plans each check constraint anew with each statement; the five
-- were half of what it cost to add a row, and more than that of every step. A function is planned once per session.
-- Adding the constraint reads the table once, and who works with it waits for that long.

-- +goose StatementBegin
create function lease_is_sound(handler text, event_id text, state text, token uuid, ended_at timestamptz)
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
comment on function lease_is_sound is 'Names its state, and belongs to a claimant while one works on it; has ended in the states that are left by a person''s word alone, and in no other.';

alter table lease
    drop constraint lease_check,
    drop constraint lease_check1,
    drop constraint lease_event_id_check,
    drop constraint lease_handler_check,
    drop constraint lease_state_check,
    add constraint lease_sound check (lease_is_sound(handler, event_id, state, token, ended_at));

-- +goose Down
alter table lease
    drop constraint lease_sound,
    add constraint lease_handler_check check (handler <> ''),
    add constraint lease_event_id_check check (event_id <> ''),
    add constraint lease_state_check
        check (state in ('pending', 'claimed', 'submitting', 'done', 'failed', 'uncertain')),
    add constraint lease_check check (state not in ('claimed', 'submitting') or token is not null),
    add constraint lease_check1 check ((state in ('done', 'failed', 'uncertain')) = (ended_at is not null));
drop function lease_is_sound;
