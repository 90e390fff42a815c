-- The database of the service notification, written by the first edition's code (commit a1d6716) on PostgreSQL 15.
-- Dumped with pg_dump --inserts --no-owner --no-privileges --no-comments. The tests in upgrade_test.go restore it.
--
-- Mails that were sent, refused or uncertain. Leases in every state: pending, claimed, submitting, done, failed and
-- uncertain. One event is not published. Inbox: rows of all outcomes, watermarks, dead letters in every state, one of
-- them edited and replayed, two events parked behind a gap. Contacts and operators' actions. SQL wrote the two rows that
-- a killed process leaves (inbox_owner and inbox_attempt).
--
-- fixture_sent is not a table of the first edition. It lists the events that the broker had at the time of the dump.

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

CREATE FUNCTION public.inbox_create_day(day timestamp with time zone, most_moved bigint) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO ''
    AS $_$
declare
    following constant timestamptz := day + interval '24 hours';
    name constant text := 'inbox_' || to_char(day at time zone 'UTC', 'YYYYMMDD');
begin
    if day <> date_trunc('day', day at time zone 'UTC') at time zone 'UTC' then
        raise exception '% is not the beginning of a day', day using errcode = 'invalid_parameter_value';
    end if;
    -- The table first, attached second: "create table ... partition of" would lock the whole inbox, attaching locks
    -- inbox_future alone. The rows of that day, from clocks that were ahead, lie there and go along.
    lock table public.inbox_future in access exclusive mode;
    if (select count(*) from (select from public.inbox_future f where f.event_time >= day and f.event_time < following
            limit most_moved + 1) as found) > most_moved then
        return false;
    end if;
    execute format('create table public.%I (like public.inbox including defaults including constraints'
        ' including storage including comments)', name);
    execute format('with moved as (delete from public.inbox_future f where f.event_time >= $1 and f.event_time < $2'
        ' returning *) insert into public.%I select * from moved', name) using day, following;
    execute format('alter table public.inbox attach partition public.%I for values from (%L) to (%L)', name, day,
        following);
    return true;
end $_$;

CREATE FUNCTION public.inbox_drop_day(partition text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO ''
    AS $$
declare
    upper_bound timestamptz;
begin
    select (regexp_match(pg_get_expr(c.relpartbound, c.oid), 'TO \(''([^'']+)''\)'))[1]::timestamptz into upper_bound
    from pg_catalog.pg_inherits i
    join pg_catalog.pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'public.inbox'::regclass and c.relname = partition;
    if upper_bound is null then
        raise exception '% is no day of the inbox', partition using errcode = 'undefined_table';
    end if;
    if upper_bound > (select h.remembers_from from public.inbox_horizon h) then
        raise exception 'partition % is not forgotten yet', partition using errcode = 'object_in_use';
    end if;
    execute format('drop table public.%I', partition);
end $$;

CREATE FUNCTION public.lease_is_sound(handler text, event_id text, state text, token uuid, ended_at timestamp with time zone) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE
    AS $$
begin
    return handler <> '' and event_id <> '' and case
        when state = 'pending' then ended_at is null
        when state in ('claimed', 'submitting') then token is not null and ended_at is null
        when state in ('done', 'failed', 'uncertain') then ended_at is not null
        else false
    end;
end $$;

CREATE FUNCTION public.outbox_create_partition(lower_bound bigint, upper_bound bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO ''
    AS $$
begin
    -- The table first, attached second: "create table ... partition of" would lock the outbox against its writers.
    execute format('create table public.%I (like public.outbox including defaults including constraints'
        ' including storage including compression)', 'outbox_' || lower_bound);
    execute format('alter table public.outbox attach partition public.%I for values from (%s) to (%s)',
        'outbox_' || lower_bound, lower_bound, upper_bound);
end $$;

CREATE FUNCTION public.outbox_drop_partition(partition text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO ''
    AS $$
declare
    bounds text[];
begin
    select regexp_match(pg_get_expr(c.relpartbound, c.oid), 'FROM \(''?(-?\d+)''?\) TO \(''?(-?\d+)''?\)') into bounds
    from pg_catalog.pg_inherits i
    join pg_catalog.pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'public.outbox'::regclass and c.relname = partition;
    if bounds is null then
        raise exception '% is no partition of the outbox', partition using errcode = 'undefined_table';
    end if;
    if not exists (select from public.outbox_partition p where p.upper_bound = bounds[2]::bigint) then
        raise exception 'partition % is not known to be wholly published', partition using errcode = 'object_in_use';
    end if;
    execute format('drop table public.%I', partition);
    delete from public.outbox_partition p where p.upper_bound = bounds[2]::bigint;
    delete from public.outbox_discarded d where d.position >= bounds[1]::bigint and d.position < bounds[2]::bigint;
end $$;

CREATE FUNCTION public.outbox_lock_writers() RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO ''
    AS $$
begin
    lock table public.outbox in share row exclusive mode;
end $$;

SET default_table_access_method = heap;

CREATE TABLE public.contact (
    user_id uuid NOT NULL,
    email text NOT NULL,
    name text NOT NULL,
    verified boolean DEFAULT false NOT NULL,
    version bigint NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.dead_letter (
    id bigint NOT NULL,
    consumer text NOT NULL COLLATE pg_catalog."C",
    event_id character varying(255) NOT NULL COLLATE pg_catalog."C",
    event_type text NOT NULL,
    key bytea NOT NULL,
    key_start bytea GENERATED ALWAYS AS ("substring"(key, 1, 1024)) STORED NOT NULL,
    version bigint DEFAULT 0 NOT NULL,
    headers jsonb NOT NULL,
    payload bytea NOT NULL,
    consumer_group text DEFAULT ''::text NOT NULL,
    topic text NOT NULL,
    partition integer NOT NULL,
    record_offset bigint NOT NULL,
    record_time timestamp with time zone,
    edited_headers jsonb,
    edited_payload bytea,
    edited_by text DEFAULT ''::text NOT NULL,
    edited_at timestamp with time zone,
    class text NOT NULL,
    code text NOT NULL,
    error text NOT NULL,
    attempts integer NOT NULL,
    first_failed_at timestamp with time zone NOT NULL,
    failed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    state text DEFAULT 'waiting'::text NOT NULL,
    holds boolean DEFAULT false NOT NULL,
    remembered boolean DEFAULT false NOT NULL,
    replays integer DEFAULT 0 NOT NULL,
    outcome text DEFAULT ''::text NOT NULL,
    settled_at timestamp with time zone,
    key_null boolean DEFAULT false NOT NULL,
    payload_null boolean DEFAULT false NOT NULL,
    record_ms bigint,
    CONSTRAINT dead_letter_state_check CHECK ((state = ANY (ARRAY['waiting'::text, 'replayed'::text, 'discarded'::text])))
);

ALTER TABLE public.dead_letter ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.dead_letter_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.fixture_sent (
    event_id uuid
);

CREATE TABLE public.inbox (
    consumer text NOT NULL COLLATE pg_catalog."C",
    event_id character varying(255) NOT NULL COLLATE pg_catalog."C",
    event_time timestamp with time zone NOT NULL,
    event_type text NOT NULL,
    payload_hash bytea NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    processed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
)
PARTITION BY RANGE (event_time);

CREATE TABLE public.inbox_20261126 (
    consumer text NOT NULL COLLATE pg_catalog."C",
    event_id character varying(255) NOT NULL COLLATE pg_catalog."C",
    event_time timestamp with time zone NOT NULL,
    event_type text NOT NULL,
    payload_hash bytea NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    processed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.inbox_20261127 (
    consumer text NOT NULL COLLATE pg_catalog."C",
    event_id character varying(255) NOT NULL COLLATE pg_catalog."C",
    event_time timestamp with time zone NOT NULL,
    event_type text NOT NULL,
    payload_hash bytea NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    processed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.inbox_20261128 (
    consumer text NOT NULL COLLATE pg_catalog."C",
    event_id character varying(255) NOT NULL COLLATE pg_catalog."C",
    event_time timestamp with time zone NOT NULL,
    event_type text NOT NULL,
    payload_hash bytea NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    processed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.inbox_20261129 (
    consumer text NOT NULL COLLATE pg_catalog."C",
    event_id character varying(255) NOT NULL COLLATE pg_catalog."C",
    event_time timestamp with time zone NOT NULL,
    event_type text NOT NULL,
    payload_hash bytea NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    processed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.inbox_20261130 (
    consumer text NOT NULL COLLATE pg_catalog."C",
    event_id character varying(255) NOT NULL COLLATE pg_catalog."C",
    event_time timestamp with time zone NOT NULL,
    event_type text NOT NULL,
    payload_hash bytea NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    processed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.inbox_20261201 (
    consumer text NOT NULL COLLATE pg_catalog."C",
    event_id character varying(255) NOT NULL COLLATE pg_catalog."C",
    event_time timestamp with time zone NOT NULL,
    event_type text NOT NULL,
    payload_hash bytea NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    processed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.inbox_20261202 (
    consumer text NOT NULL COLLATE pg_catalog."C",
    event_id character varying(255) NOT NULL COLLATE pg_catalog."C",
    event_time timestamp with time zone NOT NULL,
    event_type text NOT NULL,
    payload_hash bytea NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    processed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.inbox_20261203 (
    consumer text NOT NULL COLLATE pg_catalog."C",
    event_id character varying(255) NOT NULL COLLATE pg_catalog."C",
    event_time timestamp with time zone NOT NULL,
    event_type text NOT NULL,
    payload_hash bytea NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    processed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.inbox_attempt (
    consumer text NOT NULL COLLATE pg_catalog."C",
    topic text NOT NULL COLLATE pg_catalog."C",
    partition integer NOT NULL,
    record_offset bigint NOT NULL,
    attempts integer NOT NULL,
    last_at timestamp with time zone NOT NULL,
    last_offset bigint,
    owner text COLLATE pg_catalog."C"
);

CREATE TABLE public.inbox_foreign (
    consumer text NOT NULL COLLATE pg_catalog."C",
    event_id character varying(255) NOT NULL COLLATE pg_catalog."C",
    event_time timestamp with time zone NOT NULL,
    event_type text NOT NULL,
    payload_hash bytea NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    processed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.inbox_future (
    consumer text NOT NULL COLLATE pg_catalog."C",
    event_id character varying(255) NOT NULL COLLATE pg_catalog."C",
    event_time timestamp with time zone NOT NULL,
    event_type text NOT NULL,
    payload_hash bytea NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    processed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.inbox_horizon (
    single boolean DEFAULT true NOT NULL,
    remembers_from timestamp with time zone DEFAULT '2000-01-01 00:00:00+00'::timestamp with time zone NOT NULL,
    CONSTRAINT inbox_horizon_single_check CHECK (single)
);

CREATE TABLE public.inbox_janitor (
    single boolean DEFAULT true NOT NULL,
    holder text DEFAULT ''::text NOT NULL,
    epoch bigint DEFAULT 0 NOT NULL,
    lease_until timestamp with time zone DEFAULT '1970-01-01 00:00:00+00'::timestamp with time zone NOT NULL,
    due_at timestamp with time zone DEFAULT '1970-01-01 00:00:00+00'::timestamp with time zone NOT NULL,
    refused boolean DEFAULT false NOT NULL,
    CONSTRAINT inbox_janitor_single_check CHECK (single)
);

CREATE TABLE public.inbox_owner (
    consumer text NOT NULL COLLATE pg_catalog."C",
    topic text NOT NULL COLLATE pg_catalog."C",
    partition integer NOT NULL,
    owner text NOT NULL,
    in_flight integer NOT NULL,
    since timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.inbox_passed (
    consumer text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL
);

CREATE TABLE public.inbox_past (
    consumer text NOT NULL COLLATE pg_catalog."C",
    event_id character varying(255) NOT NULL COLLATE pg_catalog."C",
    event_time timestamp with time zone NOT NULL,
    event_type text NOT NULL,
    payload_hash bytea NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    processed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.inbox_pause (
    consumer text NOT NULL COLLATE pg_catalog."C",
    paused_by text NOT NULL,
    reason text NOT NULL,
    since timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.inbox_position (
    consumer text NOT NULL COLLATE pg_catalog."C",
    topic text NOT NULL COLLATE pg_catalog."C",
    partition integer NOT NULL,
    next_offset bigint NOT NULL
);

CREATE TABLE public.inbox_watermark (
    consumer text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL
)
WITH (fillfactor='80');

CREATE TABLE public.lease (
    handler text NOT NULL,
    event_id character varying(255) NOT NULL,
    state text DEFAULT 'pending'::text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    doubts integer DEFAULT 0 NOT NULL,
    due_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    token uuid,
    error text,
    added_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    ended_at timestamp with time zone,
    key text COLLATE pg_catalog."C",
    version bigint,
    superseded_by bigint,
    CONSTRAINT lease_sound CHECK (public.lease_is_sound(handler, (event_id)::text, state, token, ended_at))
);

CREATE TABLE public.lease_watermark (
    handler text NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL
)
WITH (fillfactor='80');

CREATE TABLE public.mail (
    id uuid NOT NULL,
    event_id text NOT NULL,
    template text NOT NULL,
    user_id uuid NOT NULL,
    recipient text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    correlation_id text,
    traceparent text,
    tracestate text
);

CREATE TABLE public.migration_audit (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);

ALTER TABLE public.migration_audit ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.migration_audit_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.migration_inbox (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);

ALTER TABLE public.migration_inbox ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.migration_inbox_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.migration_lease (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);

ALTER TABLE public.migration_lease ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.migration_lease_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.migration_notification (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);

ALTER TABLE public.migration_notification ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.migration_notification_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.migration_outbox (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);

ALTER TABLE public.migration_outbox ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.migration_outbox_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.operator_action (
    id bigint NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    operator text NOT NULL,
    verb text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    subject text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    before text DEFAULT ''::text NOT NULL,
    after text DEFAULT ''::text NOT NULL,
    affected bigint DEFAULT 1 NOT NULL,
    detail jsonb DEFAULT '{}'::jsonb NOT NULL
);

ALTER TABLE public.operator_action ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.operator_action_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.outbox (
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    "position" bigint NOT NULL,
    event_id uuid NOT NULL,
    event_type text NOT NULL,
    source text NOT NULL,
    topic text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    data_schema text,
    occurred_at timestamp with time zone NOT NULL,
    headers jsonb,
    payload bytea NOT NULL
)
PARTITION BY RANGE ("position");

CREATE TABLE public.outbox_1 (
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    "position" bigint NOT NULL,
    event_id uuid NOT NULL,
    event_type text NOT NULL,
    source text NOT NULL,
    topic text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    data_schema text,
    occurred_at timestamp with time zone NOT NULL,
    headers jsonb,
    payload bytea NOT NULL
);

CREATE TABLE public.outbox_1000001 (
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    "position" bigint NOT NULL,
    event_id uuid NOT NULL,
    event_type text NOT NULL,
    source text NOT NULL,
    topic text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    data_schema text,
    occurred_at timestamp with time zone NOT NULL,
    headers jsonb,
    payload bytea NOT NULL
);

CREATE TABLE public.outbox_2000001 (
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    "position" bigint NOT NULL,
    event_id uuid NOT NULL,
    event_type text NOT NULL,
    source text NOT NULL,
    topic text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    data_schema text,
    occurred_at timestamp with time zone NOT NULL,
    headers jsonb,
    payload bytea NOT NULL
);

CREATE TABLE public.outbox_3000001 (
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    "position" bigint NOT NULL,
    event_id uuid NOT NULL,
    event_type text NOT NULL,
    source text NOT NULL,
    topic text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    data_schema text,
    occurred_at timestamp with time zone NOT NULL,
    headers jsonb,
    payload bytea NOT NULL
);

CREATE TABLE public.outbox_4000001 (
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    "position" bigint NOT NULL,
    event_id uuid NOT NULL,
    event_type text NOT NULL,
    source text NOT NULL,
    topic text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    data_schema text,
    occurred_at timestamp with time zone NOT NULL,
    headers jsonb,
    payload bytea NOT NULL
);

CREATE TABLE public.outbox_cursor (
    name text NOT NULL,
    epoch bigint DEFAULT 0 NOT NULL,
    leader text DEFAULT ''::text NOT NULL,
    lease_until timestamp with time zone DEFAULT '1970-01-01 00:00:00+00'::timestamp with time zone NOT NULL,
    generation bigint DEFAULT 0 NOT NULL,
    sysid bigint,
    done pg_snapshot DEFAULT '3:3:'::pg_snapshot NOT NULL,
    head bigint DEFAULT 0 NOT NULL,
    win pg_snapshot,
    win_head bigint,
    win_pos bigint,
    mark_x xid8[] DEFAULT '{0}'::xid8[] NOT NULL,
    mark_h bigint[] DEFAULT '{0}'::bigint[] NOT NULL,
    base bigint DEFAULT 0 NOT NULL,
    old_done pg_snapshot,
    old_head bigint,
    old_win pg_snapshot,
    old_win_pos bigint,
    old_limit bigint,
    old_pos bigint,
    compared text,
    restored text,
    lock_epoch bigint
)
WITH (fillfactor='50');

CREATE TABLE public.outbox_discarded (
    "position" bigint NOT NULL
);

CREATE TABLE public.outbox_given_id (
    event_id uuid NOT NULL,
    content bytea NOT NULL,
    repeats integer DEFAULT 0 NOT NULL,
    added_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
)
WITH (fillfactor='90');

CREATE TABLE public.outbox_held (
    topic text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    "position" bigint NOT NULL
);

CREATE TABLE public.outbox_key (
    topic text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL
)
WITH (fillfactor='80');

CREATE TABLE public.outbox_parked (
    topic text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    reason text NOT NULL,
    permanent boolean NOT NULL,
    attempts integer DEFAULT 1 NOT NULL,
    parked_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    retry_at timestamp with time zone
);

CREATE TABLE public.outbox_partition (
    upper_bound bigint NOT NULL,
    published_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

ALTER TABLE public.outbox ALTER COLUMN "position" ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.outbox_position_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.outbox_scheduled (
    name text NOT NULL COLLATE pg_catalog."C",
    due_at timestamp with time zone NOT NULL,
    event_type text NOT NULL,
    source text NOT NULL,
    topic text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    data_schema text NOT NULL,
    occurred_at timestamp with time zone,
    headers jsonb,
    payload bytea NOT NULL,
    scheduled_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.outbox_topic (
    topic text NOT NULL COLLATE pg_catalog."C",
    partitions integer NOT NULL
);

ALTER TABLE ONLY public.inbox ATTACH PARTITION public.inbox_20261126 FOR VALUES FROM ('2026-11-26 00:00:00+00') TO ('2026-11-27 00:00:00+00');

ALTER TABLE ONLY public.inbox ATTACH PARTITION public.inbox_20261127 FOR VALUES FROM ('2026-11-27 00:00:00+00') TO ('2026-11-28 00:00:00+00');

ALTER TABLE ONLY public.inbox ATTACH PARTITION public.inbox_20261128 FOR VALUES FROM ('2026-11-28 00:00:00+00') TO ('2026-11-29 00:00:00+00');

ALTER TABLE ONLY public.inbox ATTACH PARTITION public.inbox_20261129 FOR VALUES FROM ('2026-11-29 00:00:00+00') TO ('2026-11-30 00:00:00+00');

ALTER TABLE ONLY public.inbox ATTACH PARTITION public.inbox_20261130 FOR VALUES FROM ('2026-11-30 00:00:00+00') TO ('2026-12-01 00:00:00+00');

ALTER TABLE ONLY public.inbox ATTACH PARTITION public.inbox_20261201 FOR VALUES FROM ('2026-12-01 00:00:00+00') TO ('2026-12-02 00:00:00+00');

ALTER TABLE ONLY public.inbox ATTACH PARTITION public.inbox_20261202 FOR VALUES FROM ('2026-12-02 00:00:00+00') TO ('2026-12-03 00:00:00+00');

ALTER TABLE ONLY public.inbox ATTACH PARTITION public.inbox_20261203 FOR VALUES FROM ('2026-12-03 00:00:00+00') TO ('2026-12-04 00:00:00+00');

ALTER TABLE ONLY public.inbox ATTACH PARTITION public.inbox_foreign FOR VALUES FROM (MINVALUE) TO ('2000-01-01 00:00:00+00');

ALTER TABLE ONLY public.inbox ATTACH PARTITION public.inbox_future DEFAULT;

ALTER TABLE ONLY public.inbox ATTACH PARTITION public.inbox_past FOR VALUES FROM ('2000-01-01 00:00:00+00') TO ('2026-11-26 00:00:00+00');

ALTER TABLE ONLY public.outbox ATTACH PARTITION public.outbox_1 FOR VALUES FROM ('1') TO ('1000001');

ALTER TABLE ONLY public.outbox ATTACH PARTITION public.outbox_1000001 FOR VALUES FROM ('1000001') TO ('2000001');

ALTER TABLE ONLY public.outbox ATTACH PARTITION public.outbox_2000001 FOR VALUES FROM ('2000001') TO ('3000001');

ALTER TABLE ONLY public.outbox ATTACH PARTITION public.outbox_3000001 FOR VALUES FROM ('3000001') TO ('4000001');

ALTER TABLE ONLY public.outbox ATTACH PARTITION public.outbox_4000001 FOR VALUES FROM ('4000001') TO ('5000001');

INSERT INTO public.contact VALUES
	('01a219a8-d177-722b-91c0-e9891462a896', 'bob@example.org', 'Bob', false, 1, '2026-11-26 21:00:23.90838+00'),
	('01a219a8-d1a1-780a-a486-7664f1472f20', 'frank@example.org', 'Frank', false, 1, '2026-11-26 21:00:23.932362+00'),
	('01a219a8-d196-78ed-915b-86c3a6d5e08b', 'eve@example.org', 'Eve', false, 1, '2026-11-26 21:00:23.934424+00'),
	('01a219a8-d1b2-7336-b793-f90b552f98e9', 'cut@example.org', 'Cut', false, 1, '2026-11-26 21:00:23.936088+00'),
	('01a219a8-d1bc-787e-8f17-90ea55cdc218', 'later2@example.org', 'Later2', false, 1, '2026-11-26 21:00:23.936979+00'),
	('01a219a8-d1a9-74a1-96ef-0c65c25287df', 'refused@example.org', 'Refused', false, 1, '2026-11-26 21:00:23.938245+00'),
	('01a219a8-d17f-71fe-aa72-afade8568b03', 'carl@example.org', 'Carl', false, 1, '2026-11-26 21:00:23.941407+00'),
	('01a219a8-d1b6-7d0d-95f9-586760e0d216', 'later1@example.org', 'Later1', false, 1, '2026-11-26 21:00:23.942483+00'),
	('01a219a8-d1c4-7d57-ae73-766f977699d6', 'later3@example.org', 'Later3', false, 1, '2026-11-26 21:00:23.966612+00'),
	('01a219a8-d1e8-79ca-87f3-94d842c90292', 'doomed2@example.org', 'Calm 2', false, 2, '2026-11-26 21:00:23.976802+00'),
	('01a219a8-d1cd-7469-b10c-b378d2d140e6', 'doomed1@example.org', 'Calm 1', false, 2, '2026-11-26 21:00:23.98047+00'),
	('01a219a8-d186-7b6a-a637-eb9efb179872', 'dora@example.org', 'Dora E', false, 3, '2026-11-26 21:00:23.993088+00'),
	('01a219a8-d26a-733a-b281-4e61ea891cf2', '01a219a8-d26a-733a-b281-4e61ea891cf2@example.org', 'Ada', false, 1, '2026-11-26 21:00:24.051968+00'),
	('01a219a8-d15a-71af-ba6d-a7f67748488d', 'ada@example.org', 'Countess', true, 3, '2026-11-26 21:00:24.070464+00'),
	('d56565c1-0cdb-4e9c-9fef-bab1b7478c81', 's3@example.org', 'S', false, 1, '2026-11-26 21:00:25.658642+00');

INSERT INTO public.dead_letter OVERRIDING SYSTEM VALUE VALUES
	(1, 'notification.users', '01a219a8-d26b-7b89-92b1-6a7e7048bb43', 'com.example.customer.user-registered.v1', '\x736f6d656f6e652d32', DEFAULT, 1, '[["ce_id", "MDFhMjE5YTgtZDI2Yi03Yjg5LTkyYjEtNmE3ZTcwNDhiYjQz"], ["_watermill_message_uuid", "MDFhMjE5YTgtZDI2Yi03Yjg5LTkyYjEtNmE3ZTcwNDhiYjQz"], ["ce_source", "L2Vsc2V3aGVyZQ=="], ["ce_type", "Y29tLmV4YW1wbGUuY3VzdG9tZXIudXNlci1yZWdpc3RlcmVkLnYx"], ["ce_specversion", "MS4w"], ["ce_time", "MjAyNi0wMS0wMlQwMzowNDowNVo="], ["ce_subject", "c29tZW9uZS0y"], ["ce_aggregateversion", "MQ=="], ["content-type", "YXBwbGljYXRpb24vanNvbg=="]]', '\x67617262616765', 'twinbox.e2e-9aad4afb.notification.users', 'customer.users.v1', 0, 1, '2026-11-26 21:00:24.043+00', NULL, NULL, '', NULL, 'permanent', 'invalid_json', 'check event: invalid_json: the payload is not one JSON document in UTF-8', 1, '2026-11-26 21:00:24.054254+00', '2026-11-26 21:00:24.056049+00', 'waiting', true, true, 0, '', NULL, false, false, NULL),
	(3, 'notification.users', '01a219a8-d26a-73ce-acab-4831445d9119', 'com.example.customer.email-verified.v1', '\x30316132313961382d643236612d373333612d623238312d346536316561383931636632', DEFAULT, 3, '[["ce_id", "MDFhMjE5YTgtZDI2YS03M2NlLWFjYWItNDgzMTQ0NWQ5MTE5"], ["_watermill_message_uuid", "MDFhMjE5YTgtZDI2YS03M2NlLWFjYWItNDgzMTQ0NWQ5MTE5"], ["ce_source", "L3R3aW5ib3gvY3VzdG9tZXI="], ["ce_type", "Y29tLmV4YW1wbGUuY3VzdG9tZXIuZW1haWwtdmVyaWZpZWQudjE="], ["ce_specversion", "MS4w"], ["ce_time", "MjAyNi0xMS0yNlQyMTowMDoyNC4wNDIyMjcyNzJa"], ["ce_subject", "MDFhMjE5YTgtZDI2YS03MzNhLWIyODEtNGU2MWVhODkxY2Yy"], ["ce_aggregateversion", "Mw=="], ["ce_dataschema", "aHR0cHM6Ly9leGFtcGxlLmNvbS90d2luYm94L2V2ZW50cy9lbWFpbC12ZXJpZmllZC52MS5qc29u"], ["content-type", "YXBwbGljYXRpb24vanNvbg=="]]', '\x7b22757365725f6964223a2230316132313961382d643236612d373333612d623238312d346536316561383931636632222c22656d61696c223a2230316132313961382d643236612d373333612d623238312d346536316561383931636632406578616d706c652e6f7267222c2276657269666965645f6174223a22323032362d31312d32365432313a30303a32342e3034323232373237325a227d', 'twinbox.e2e-9aad4afb.notification.users', 'customer.users.v1', 2, 3, '2026-11-26 21:00:24.042+00', NULL, NULL, '', NULL, 'parked', 'version_gap', 'an earlier version of the key is missing', 1, '2026-11-26 21:00:24.062384+00', '2026-11-26 21:00:24.063216+00', 'waiting', true, true, 0, '', NULL, false, false, NULL),
	(4, 'notification.users', '01a219a8-d26a-73d5-8d49-ef39f35fabd5', 'com.example.customer.user-renamed.v1', '\x30316132313961382d643236612d373333612d623238312d346536316561383931636632', DEFAULT, 4, '[["ce_id", "MDFhMjE5YTgtZDI2YS03M2Q1LThkNDktZWYzOWYzNWZhYmQ1"], ["_watermill_message_uuid", "MDFhMjE5YTgtZDI2YS03M2Q1LThkNDktZWYzOWYzNWZhYmQ1"], ["ce_source", "L3R3aW5ib3gvY3VzdG9tZXI="], ["ce_type", "Y29tLmV4YW1wbGUuY3VzdG9tZXIudXNlci1yZW5hbWVkLnYx"], ["ce_specversion", "MS4w"], ["ce_time", "MjAyNi0xMS0yNlQyMTowMDoyNC4wNDIyMjcyNzJa"], ["ce_subject", "MDFhMjE5YTgtZDI2YS03MzNhLWIyODEtNGU2MWVhODkxY2Yy"], ["ce_aggregateversion", "NA=="], ["ce_dataschema", "aHR0cHM6Ly9leGFtcGxlLmNvbS90d2luYm94L2V2ZW50cy91c2VyLXJlbmFtZWQudjEuanNvbg=="], ["content-type", "YXBwbGljYXRpb24vanNvbg=="]]', '\x7b22757365725f6964223a2230316132313961382d643236612d373333612d623238312d346536316561383931636632222c226e616d65223a224c6f76656c616365222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32342e3034323232373237325a227d', 'twinbox.e2e-9aad4afb.notification.users', 'customer.users.v1', 2, 4, '2026-11-26 21:00:24.042+00', NULL, NULL, '', NULL, 'parked', 'parked_behind', 'an earlier event of the key is parked', 1, '2026-11-26 21:00:24.062411+00', '2026-11-26 21:00:24.063466+00', 'waiting', true, true, 0, '', NULL, false, false, NULL),
	(5, 'notification.users', '01a219a8-d26b-7a86-9927-16714b25938e', 'com.example.customer.user-registered.v1', '\x736f6d656f6e652d31', DEFAULT, 1, '[["ce_id", "MDFhMjE5YTgtZDI2Yi03YTg2LTk5MjctMTY3MTRiMjU5Mzhl"], ["_watermill_message_uuid", "MDFhMjE5YTgtZDI2Yi03YTg2LTk5MjctMTY3MTRiMjU5Mzhl"], ["ce_source", "L2Vsc2V3aGVyZQ=="], ["ce_type", "Y29tLmV4YW1wbGUuY3VzdG9tZXIudXNlci1yZWdpc3RlcmVkLnYx"], ["ce_specversion", "MS4w"], ["ce_time", "MjAyNi0wMS0wMlQwMzowNDowNVo="], ["ce_subject", "c29tZW9uZS0x"], ["ce_aggregateversion", "MQ=="], ["content-type", "YXBwbGljYXRpb24vanNvbg=="]]', '\x7b22757365725f6964223a387d', 'twinbox.e2e-9aad4afb.notification.users', 'customer.users.v1', 4, 5, '2026-11-26 21:00:24.043+00', NULL, NULL, '', NULL, 'permanent', 'schema_violation', 'check event: schema_violation: / required, /user_id type', 1, '2026-11-26 21:00:24.06487+00', '2026-11-26 21:00:24.065881+00', 'waiting', true, true, 0, '', NULL, false, false, NULL),
	(2, 'notification.users', '01a219a8-d26b-77ba-8d23-6ae5798d2180', 'com.example.customer.user-registered.v1', '\x736f6d656f6e652d30', DEFAULT, 1, '[["ce_id", "MDFhMjE5YTgtZDI2Yi03N2JhLThkMjMtNmFlNTc5OGQyMTgw"], ["_watermill_message_uuid", "MDFhMjE5YTgtZDI2Yi03N2JhLThkMjMtNmFlNTc5OGQyMTgw"], ["ce_source", "L2Vsc2V3aGVyZQ=="], ["ce_type", "Y29tLmV4YW1wbGUuY3VzdG9tZXIudXNlci1yZWdpc3RlcmVkLnYx"], ["ce_specversion", "MS4w"], ["ce_time", "MjAyNi0wMS0wMlQwMzowNDowNVo="], ["ce_subject", "c29tZW9uZS0w"], ["ce_aggregateversion", "MQ=="], ["content-type", "YXBwbGljYXRpb24vanNvbg=="]]', '\x7b22757365725f6964223a377d', 'twinbox.e2e-9aad4afb.notification.users', 'customer.users.v1', 4, 4, '2026-11-26 21:00:24.043+00', NULL, NULL, '', NULL, 'permanent', 'schema_violation', 'check event: schema_violation: / required, /user_id type', 1, '2026-11-26 21:00:24.054356+00', '2026-11-26 21:00:24.057567+00', 'discarded', true, true, 0, '', '2026-11-26 21:00:25.620785+00', false, false, NULL),
	(6, 'notification.users', '01a219a8-d26b-7ceb-920f-e7d837c3b8a2', 'com.example.customer.user-registered.v1', '\x64353635363563312d306364622d346539632d396665662d626162316237343738633831', DEFAULT, 1, '[["ce_id", "MDFhMjE5YTgtZDI2Yi03Y2ViLTkyMGYtZTdkODM3YzNiOGEy"], ["_watermill_message_uuid", "MDFhMjE5YTgtZDI2Yi03Y2ViLTkyMGYtZTdkODM3YzNiOGEy"], ["ce_source", "L2Vsc2V3aGVyZQ=="], ["ce_type", "Y29tLmV4YW1wbGUuY3VzdG9tZXIudXNlci1yZWdpc3RlcmVkLnYx"], ["ce_specversion", "MS4w"], ["ce_time", "MjAyNi0wMS0wMlQwMzowNDowNVo="], ["ce_subject", "ZDU2NTY1YzEtMGNkYi00ZTljLTlmZWYtYmFiMWI3NDc4Yzgx"], ["ce_aggregateversion", "MQ=="], ["content-type", "YXBwbGljYXRpb24vanNvbg=="]]', '\x7b22757365725f6964223a397d', 'twinbox.e2e-9aad4afb.notification.users', 'customer.users.v1', 4, 6, '2026-11-26 21:00:24.043+00', '[["ce_id", "MDFhMjE5YTgtZDI2Yi03Y2ViLTkyMGYtZTdkODM3YzNiOGEy"], ["_watermill_message_uuid", "MDFhMjE5YTgtZDI2Yi03Y2ViLTkyMGYtZTdkODM3YzNiOGEy"], ["ce_source", "L2Vsc2V3aGVyZQ=="], ["ce_type", "Y29tLmV4YW1wbGUuY3VzdG9tZXIudXNlci1yZWdpc3RlcmVkLnYx"], ["ce_specversion", "MS4w"], ["ce_time", "MjAyNi0wMS0wMlQwMzowNDowNVo="], ["ce_subject", "ZDU2NTY1YzEtMGNkYi00ZTljLTlmZWYtYmFiMWI3NDc4Yzgx"], ["ce_aggregateversion", "MQ=="], ["content-type", "YXBwbGljYXRpb24vanNvbg=="]]', '\x7b22757365725f6964223a2264353635363563312d306364622d346539632d396665662d626162316237343738633831222c22656d61696c223a227333406578616d706c652e6f7267222c226e616d65223a2253222c22726567697374657265645f6174223a22323032362d30312d30325430333a30343a30355a227d', 'grace', '2026-11-26 21:00:25.630478+00', 'permanent', 'schema_violation', 'check event: schema_violation: / required, /user_id type', 1, '2026-11-26 21:00:24.070805+00', '2026-11-26 21:00:24.073814+00', 'replayed', true, true, 0, 'applied', '2026-11-26 21:00:25.660062+00', false, false, NULL);

INSERT INTO public.fixture_sent VALUES
	('01a219a8-d22f-7259-847e-339324cf308d'),
	('01a219a8-d230-7142-a918-11a431f2a951'),
	('01a219a8-d22f-71b7-a84a-311600152441'),
	('01a219a8-d239-77f8-a953-19a7d2323ac1'),
	('01a219a8-d23d-78c6-a143-cf34ef77a5c5'),
	('01a219a8-d241-752d-9ffc-7c4a95ac880d'),
	('01a219a8-d250-764e-b800-8a685863bfbd'),
	('01a219a8-d259-7e5d-9729-b0e29fdaedb4'),
	('01a219a8-d278-7a0e-8842-33331c11a529'),
	('01a219a8-d281-7d4b-9da1-e3c48ce5c581'),
	('01a219a8-d27a-72db-a11a-41e926d9f236'),
	('01a219a8-d281-7f17-8a77-cded5959f7ed'),
	('01a219a8-d289-7d94-ada4-5c996ceca6bd'),
	('01a219a8-d8d0-7225-82dd-dbd5f1198f9a');

INSERT INTO public.inbox_20261126 VALUES
	('notification.users', '01a219a8-d177-730d-b845-541b5dcfe877', '2026-11-26 21:00:23.799+00', 'com.example.customer.user-registered.v1', '\x3d5917758892038cc25dea9bcff045f54014b19f3a296826222280d223b31ef7', '{"group": "twinbox.e2e-9aad4afb.notification.users", "topic": "customer.users.v1", "offset": 0, "outcome": "applied", "partition": 0, "correlation_id": "01a219a8-d176-79fb-a727-a21c8385a582", "processing_time": "2026-11-26T21:00:23.898239541Z"}', '2026-11-26 21:00:23.90271+00'),
	('notification.users', '01a219a8-d15a-735b-a1c8-2c95aa9e72ed', '2026-11-26 21:00:23.77+00', 'com.example.customer.user-registered.v1', '\xae46516800314dc9195ea151f992c2965a21fd9a7b00066d983a0f02feb95b18', '{"group": "twinbox.e2e-9aad4afb.notification.users", "topic": "customer.users.v1", "offset": 0, "outcome": "applied", "partition": 5, "correlation_id": "01a219a8-d0f8-779a-8851-0d6cd7db95c8", "processing_time": "2026-11-26T21:00:23.902320396Z"}', '2026-11-26 21:00:23.907398+00'),
	('notification.users', '01a219a8-d186-7bc1-b6ba-6e2318c5c76c', '2026-11-26 21:00:23.814+00', 'com.example.customer.user-registered.v1', '\xaae9c934e0c841e3b6d616c1f387d044fa3f2b4182309ba1e32582683259e363', '{"group": "twinbox.e2e-9aad4afb.notification.users", "topic": "customer.users.v1", "offset": 1, "outcome": "applied", "partition": 5, "correlation_id": "01a219a8-d183-7dae-8370-10e53580eaa5", "processing_time": "2026-11-26T21:00:23.902320396Z"}', '2026-11-26 21:00:23.907485+00'),
	('notification.users', '01a219a8-d1a1-78cb-aea8-e9fe3edcfc8c', '2026-11-26 21:00:23.841+00', 'com.example.customer.user-registered.v1', '\x53caa89b846fc43b4be4c8186282e1467137c6468c47b62984348823a979b91b', '{"group": "twinbox.e2e-9aad4afb.notification.users", "topic": "customer.users.v1", "offset": 0, "outcome": "applied", "partition": 1, "correlation_id": "01a219a8-d19f-7c9f-a689-ff26513db744", "processing_time": "2026-11-26T21:00:23.908571968Z"}', '2026-11-26 21:00:23.912756+00'),
	('notification.users', '01a219a8-d1a9-755e-91bd-76809d3eeda6', '2026-11-26 21:00:23.849+00', 'com.example.customer.user-registered.v1', '\xce7d1700af95364d839fc02ac74d57fa0b81130a6c60894bc30ad0d4c97332d6', '{"group": "twinbox.e2e-9aad4afb.notification.users", "topic": "customer.users.v1", "offset": 1, "outcome": "applied", "partition": 1, "correlation_id": "01a219a8-d1a9-7083-a039-8375b664cad6", "processing_time": "2026-11-26T21:00:23.908571968Z"}', '2026-11-26 21:00:23.912836+00'),
	('notification.users', '01a219a8-d1b2-73f4-bc59-3384d8845ce7', '2026-11-26 21:00:23.858+00', 'com.example.customer.user-registered.v1', '\xaed8d0d2f319bbb50ab96e6439c513aca1c40f7839f7362fb7ea72c37489f113', '{"group": "twinbox.e2e-9aad4afb.notification.users", "topic": "customer.users.v1", "offset": 0, "outcome": "applied", "partition": 2, "correlation_id": "01a219a8-d1b1-7841-b1e6-f83310983a13", "processing_time": "2026-11-26T21:00:23.908642313Z"}', '2026-11-26 21:00:23.917513+00'),
	('notification.users', '01a219a8-d1bc-7915-9b3d-862dc2c0f288', '2026-11-26 21:00:23.868+00', 'com.example.customer.user-registered.v1', '\x4ac11bf843063be2ad28a7d29e01b89dd02ef0af79a9de09af7f0ad3bec7a5f4', '{"group": "twinbox.e2e-9aad4afb.notification.users", "topic": "customer.users.v1", "offset": 1, "outcome": "applied", "partition": 2, "correlation_id": "01a219a8-d1ba-7eaa-9573-80660bd4b5e0", "processing_time": "2026-11-26T21:00:23.908642313Z"}', '2026-11-26 21:00:23.917618+00'),
	('notification.users', '01a219a8-d17f-72b2-bd01-3cd135dd3359', '2026-11-26 21:00:23.807+00', 'com.example.customer.user-registered.v1', '\xf697c6c9d170471142fef31a87f7779e22f8f508e8f88b6d16ed6bc6172cd85b', '{"group": "twinbox.e2e-9aad4afb.notification.users", "topic": "customer.users.v1", "offset": 0, "outcome": "applied", "partition": 3, "correlation_id": "01a219a8-d17c-78ef-b44d-a6f420481afa", "processing_time": "2026-11-26T21:00:23.912556798Z"}', '2026-11-26 21:00:23.919279+00'),
	('notification.users', '01a219a8-d1b6-7d98-917d-9a0608e929a2', '2026-11-26 21:00:23.862+00', 'com.example.customer.user-registered.v1', '\x03dddaebdfc0566267ac1d0e40d8a836443b3cfe341840c1c527f0ac1404a95f', '{"group": "twinbox.e2e-9aad4afb.notification.users", "topic": "customer.users.v1", "offset": 1, "outcome": "applied", "partition": 3, "correlation_id": "01a219a8-d1b6-792c-9ead-b8bb22dc56fe", "processing_time": "2026-11-26T21:00:23.912556798Z"}', '2026-11-26 21:00:23.921357+00'),
	('notification.users', '01a219a8-d196-79fe-bca9-20358bff4ce5', '2026-11-26 21:00:23.83+00', 'com.example.customer.user-registered.v1', '\x70d8dd9a09bd86438279231847ad5942fe36c0852c25acee7983cb57078b5586', '{"group": "twinbox.e2e-9aad4afb.notification.users", "topic": "customer.users.v1", "offset": 0, "outcome": "applied", "partition": 4, "correlation_id": "01a219a8-d194-718a-9928-90b6822d0c3c", "processing_time": "2026-11-26T21:00:23.920811426Z"}', '2026-11-26 21:00:23.928593+00'),
	('notification.users', '01a219a8-d1c4-7df1-9367-5ea42a65830c', '2026-11-26 21:00:23.876+00', 'com.example.customer.user-registered.v1', '\xd9c3afedb15fca24d3c4fbbdc749eb652a3239463be7178faa8e56bd57b6bfdf', '{"group": "twinbox.e2e-9aad4afb.notification.users", "topic": "customer.users.v1", "offset": 1, "outcome": "applied", "partition": 4, "correlation_id": "01a219a8-d1c3-7dc8-bc5e-dbed2819e3a5", "processing_time": "2026-11-26T21:00:23.959517435Z"}', '2026-11-26 21:00:23.962176+00'),
	('notification.users', '01a219a8-d1e8-7a6c-8ede-a40ae0212008', '2026-11-26 21:00:23.912+00', 'com.example.customer.user-registered.v1', '\xdafb6d5633b08d72ecae064a1aef0ccd3388b32c4b3db98cbd1f2e352cd97fdb', '{"group": "twinbox.e2e-9aad4afb.notification.users", "topic": "customer.users.v1", "offset": 2, "outcome": "applied", "partition": 4, "correlation_id": "01a219a8-d1e5-7102-b76c-50f56b519c3e", "processing_time": "2026-11-26T21:00:23.959517435Z"}', '2026-11-26 21:00:23.962212+00'),
	('notification.users', '01a219a8-d1cd-7505-825d-877dba8540cf', '2026-11-26 21:00:23.885+00', 'com.example.customer.user-registered.v1', '\x0d8ad17eb0b59728094dc2352485f16c8f1dd339a9266c0101cc4ea89ddf0ea1', '{"group": "twinbox.e2e-9aad4afb.notification.users", "topic": "customer.users.v1", "offset": 2, "outcome": "applied", "partition": 3, "correlation_id": "01a219a8-d1cc-7c62-9262-d79fe7cf9fd3", "processing_time": "2026-11-26T21:00:23.95994046Z"}', '2026-11-26 21:00:23.962822+00'),
	('notification.users', '01a219a8-d1da-71af-9769-f897b0fb74d7', '2026-11-26 21:00:23.898+00', 'com.example.customer.user-renamed.v1', '\xc5ff23ab75c705f9d8a0961df191b72d455a62b11c5743830996f684bf37c870', '{"group": "twinbox.e2e-9aad4afb.notification.users", "topic": "customer.users.v1", "offset": 3, "outcome": "applied", "partition": 3, "correlation_id": "01a219a8-d1cf-7a10-b417-8cc797fd3359", "processing_time": "2026-11-26T21:00:23.95994046Z"}', '2026-11-26 21:00:23.962851+00'),
	('notification.users', '01a219a8-d212-71ae-ab90-4397d447c214', '2026-11-26 21:00:23.954+00', 'com.example.customer.user-renamed.v1', '\x114d26efdfd2c2587e5dce7880bb3ca7c5a32ea41dc4b7f9f696f60bab4fb53c', '{"group": "twinbox.e2e-9aad4afb.notification.users", "topic": "customer.users.v1", "offset": 2, "outcome": "applied", "partition": 5, "correlation_id": "01a219a8-d210-7dc3-a801-6ef97adc71d3", "processing_time": "2026-11-26T21:00:23.972000258Z"}', '2026-11-26 21:00:23.974069+00'),
	('notification.users', '01a219a8-d1fa-77aa-b924-b2603b117bb8', '2026-11-26 21:00:23.93+00', 'com.example.customer.user-renamed.v1', '\x537cd6c58800d4ee1cbbe8986f85136da648a18e0a7718cb2f40a938f20232ac', '{"group": "twinbox.e2e-9aad4afb.notification.users", "topic": "customer.users.v1", "offset": 3, "outcome": "applied", "partition": 4, "correlation_id": "01a219a8-d1f8-758e-a320-b6516f217bd3", "processing_time": "2026-11-26T21:00:23.975320802Z"}', '2026-11-26 21:00:23.976244+00'),
	('notification.users', '01a219a8-d227-71f7-9b3e-d721a4b124de', '2026-11-26 21:00:23.975+00', 'com.example.customer.user-renamed.v1', '\x936b82640195288d1e6aa7e8fd485b13db604922a9321007b07bda43ac03df94', '{"group": "twinbox.e2e-9aad4afb.notification.users", "topic": "customer.users.v1", "offset": 3, "outcome": "applied", "partition": 5, "correlation_id": "01a219a8-d218-7ace-b760-20add030ce4b", "processing_time": "2026-11-26T21:00:23.987171687Z"}', '2026-11-26 21:00:23.987899+00'),
	('notification.users', '01a219a8-d230-707c-ae23-f61fd881af2e', '2026-11-26 21:00:23.984+00', 'com.example.customer.user-renamed.v1', '\xad8a2e28adbe8ac89b957f0ea32f17bcb4051e34a78fff79987679d1f3cd6c24', '{"group": "twinbox.e2e-9aad4afb.notification.users", "topic": "customer.users.v1", "offset": 4, "outcome": "applied", "partition": 5, "correlation_id": "01a219a8-d22e-71c7-a871-55d93fd5eb08", "processing_time": "2026-11-26T21:00:23.991194194Z"}', '2026-11-26 21:00:23.992511+00'),
	('notification.users', '01a219a8-d26b-762d-ab4d-543fffc36331', '2026-11-26 21:00:24.043+00', 'com.example.customer.user-registered.v1', '\x15319984ca9bc4253c165afac07fc3dd2535d9c719cdbc064106967ecf385ba8', '{"group": "twinbox.e2e-9aad4afb.notification.users", "topic": "customer.users.v1", "offset": 5, "outcome": "stale", "partition": 5, "processing_time": "2026-11-26T21:00:24.044323668Z"}', '2026-11-26 21:00:24.044777+00'),
	('notification.users', '01a219a8-d26a-73ab-8a14-db6163edf987', '2026-11-26 21:00:24.042+00', 'com.example.customer.user-registered.v1', '\x4649b6d109b9aaa24a4a93d6e130a16651554527673df79d0ad785465f765a22', '{"group": "twinbox.e2e-9aad4afb.notification.users", "topic": "customer.users.v1", "offset": 2, "outcome": "applied", "partition": 2, "processing_time": "2026-11-26T21:00:24.043004238Z"}', '2026-11-26 21:00:24.048052+00'),
	('notification.users', '01a219a8-d26b-7b89-92b1-6a7e7048bb43', '2026-11-26 21:00:24.043+00', 'com.example.customer.user-registered.v1', '\x795b6904e54f82411df4b0e27a373a55eea3f9d66dac5a9bce1dd92f7b401da5', '{"group": "twinbox.e2e-9aad4afb.notification.users", "topic": "customer.users.v1", "offset": 1, "outcome": "dead", "partition": 0, "processing_time": "2026-11-26T21:00:24.054264527Z"}', '2026-11-26 21:00:24.055277+00'),
	('notification.users', '01a219a8-d26a-73ce-acab-4831445d9119', '2026-11-26 21:00:24.042+00', 'com.example.customer.email-verified.v1', '\x777797ed9af085bdf00a8c5f1fcb85a63f21806a7bb514f69b53aa799327cc8e', '{"group": "twinbox.e2e-9aad4afb.notification.users", "topic": "customer.users.v1", "offset": 3, "outcome": "gap", "partition": 2, "processing_time": "2026-11-26T21:00:24.060325924Z"}', '2026-11-26 21:00:24.061169+00'),
	('notification.users', '01a219a8-d26a-73d5-8d49-ef39f35fabd5', '2026-11-26 21:00:24.042+00', 'com.example.customer.user-renamed.v1', '\xe3fd7cab2377ec245f423ba7d4d5496ed94d7ef8dcc00ce63c0367da9ced1c37', '{"group": "twinbox.e2e-9aad4afb.notification.users", "topic": "customer.users.v1", "offset": 4, "outcome": "parked", "partition": 2, "processing_time": "2026-11-26T21:00:24.060325924Z"}', '2026-11-26 21:00:24.061202+00'),
	('notification.users', '01a219a8-d260-7b35-91a2-f98d03138c93', '2026-11-26 21:00:24.032+00', 'com.example.customer.email-verified.v1', '\xbaec02769220125cb2ff8ffe4b53b73fde2c731de0caad6db3b6b12141348d8a', '{"group": "twinbox.e2e-9aad4afb.notification.users", "topic": "customer.users.v1", "offset": 6, "outcome": "applied", "partition": 5, "correlation_id": "01a219a8-d25d-711f-a561-2ad528318b5a", "processing_time": "2026-11-26T21:00:24.0647077Z"}', '2026-11-26 21:00:24.067307+00'),
	('notification.users', '01a219a8-d26b-77ba-8d23-6ae5798d2180', '2026-11-26 21:00:24.043+00', 'com.example.customer.user-registered.v1', '\x2820d74979efad7d71d9e6fb6c5d53c7f5c8eeed822a63f19a6b01081d2d6837', '{"group": "twinbox.e2e-9aad4afb.notification.users", "topic": "customer.users.v1", "offset": 4, "outcome": "dead", "partition": 4, "processing_time": "2026-11-26T21:00:24.054360631Z"}', '2026-11-26 21:00:24.055571+00'),
	('notification.users', '01a219a8-d26b-7a86-9927-16714b25938e', '2026-11-26 21:00:24.043+00', 'com.example.customer.user-registered.v1', '\xcde457fc91c0717d62fb097af49a03d47aad3f89f22500c0f572c5107f2dd582', '{"group": "twinbox.e2e-9aad4afb.notification.users", "topic": "customer.users.v1", "offset": 5, "outcome": "dead", "partition": 4, "processing_time": "2026-11-26T21:00:24.064874971Z"}', '2026-11-26 21:00:24.065561+00'),
	('notification.users', '01a219a8-d26b-7ceb-920f-e7d837c3b8a2', '2026-11-26 21:00:24.043+00', 'com.example.customer.user-registered.v1', '\x9156586f6061333745c7b450fdcd2bcc58b69480bb46365984ba365068c5f3ba', '{"group": "twinbox.e2e-9aad4afb.notification.users", "topic": "customer.users.v1", "offset": 6, "outcome": "applied", "partition": 4, "processing_time": "2026-11-26T21:00:24.070812221Z"}', '2026-11-26 21:00:24.072244+00');

INSERT INTO public.inbox_attempt VALUES
	('notification.users', 'customer.users.v1', 5, 100, 1, '2026-11-26 21:00:26.224829+00', 102, 'gone');

INSERT INTO public.inbox_horizon VALUES
	(true, '2026-11-16 00:00:00+00');

INSERT INTO public.inbox_janitor VALUES
	(true, 'first-edition', 1, '2026-11-26 21:00:24.039151+00', '2026-11-26 22:00:24.039151+00', false);

INSERT INTO public.inbox_owner VALUES
	('notification.users', 'customer.users.v1', 5, 'gone', 3, '2026-11-26 21:00:26.219242+00');

INSERT INTO public.inbox_position VALUES
	('notification.users', 'customer.users.v1', 5, 7),
	('notification.users', 'customer.users.v1', 1, 2),
	('notification.users', 'customer.users.v1', 0, 2),
	('notification.users', 'customer.users.v1', 4, 7),
	('notification.users', 'customer.users.v1', 3, 4),
	('notification.users', 'customer.users.v1', 2, 6);

INSERT INTO public.inbox_watermark VALUES
	('notification.users', '01a219a8-d177-722b-91c0-e9891462a896', 1),
	('notification.users', '01a219a8-d1a1-780a-a486-7664f1472f20', 1),
	('notification.users', '01a219a8-d1a9-74a1-96ef-0c65c25287df', 1),
	('notification.users', '01a219a8-d196-78ed-915b-86c3a6d5e08b', 1),
	('notification.users', '01a219a8-d1b2-7336-b793-f90b552f98e9', 1),
	('notification.users', '01a219a8-d1bc-787e-8f17-90ea55cdc218', 1),
	('notification.users', '01a219a8-d17f-71fe-aa72-afade8568b03', 1),
	('notification.users', '01a219a8-d1b6-7d0d-95f9-586760e0d216', 1),
	('notification.users', '01a219a8-d1c4-7d57-ae73-766f977699d6', 1),
	('notification.users', '01a219a8-d1e8-79ca-87f3-94d842c90292', 2),
	('notification.users', '01a219a8-d1cd-7469-b10c-b378d2d140e6', 2),
	('notification.users', '01a219a8-d186-7b6a-a637-eb9efb179872', 3),
	('notification.users', '01a219a8-d26a-733a-b281-4e61ea891cf2', 1),
	('notification.users', 'another', 1),
	('notification.users', '01a219a8-d15a-71af-ba6d-a7f67748488d', 3),
	('notification.users', 'd56565c1-0cdb-4e9c-9fef-bab1b7478c81', 1);

INSERT INTO public.lease VALUES
	('mail.verification', '01a219a8-d186-7bc1-b6ba-6e2318c5c76c', 'done', 1, 0, '2026-11-26 21:00:23.975878+00', '7d6f9e66-ca2e-4d48-9a22-4a2479018f55', NULL, '2026-11-26 21:00:23.929736+00', '2026-11-26 21:00:23.975878+00', NULL, NULL, NULL),
	('mail.verification', '01a219a8-d15a-735b-a1c8-2c95aa9e72ed', 'done', 1, 0, '2026-11-26 21:00:23.980031+00', '7d6f9e66-ca2e-4d48-9a22-4a2479018f55', NULL, '2026-11-26 21:00:23.92768+00', '2026-11-26 21:00:23.980031+00', NULL, NULL, NULL),
	('mail.verification', '01a219a8-d177-730d-b845-541b5dcfe877', 'done', 1, 0, '2026-11-26 21:00:23.982231+00', '61a3321b-e3f1-4292-9959-4152d3c59d1f', NULL, '2026-11-26 21:00:23.922592+00', '2026-11-26 21:00:23.982231+00', NULL, NULL, NULL),
	('mail.verification', '01a219a8-d17f-72b2-bd01-3cd135dd3359', 'done', 1, 0, '2026-11-26 21:00:23.991423+00', '61a3321b-e3f1-4292-9959-4152d3c59d1f', NULL, '2026-11-26 21:00:23.941547+00', '2026-11-26 21:00:23.991424+00', NULL, NULL, NULL),
	('mail.verification', '01a219a8-d1a9-755e-91bd-76809d3eeda6', 'failed', 1, 0, '2026-11-26 21:00:23.992728+00', '61a3321b-e3f1-4292-9959-4152d3c59d1f', 'submit mail: rcpt to: 550 5.0.0', '2026-11-26 21:00:23.938289+00', '2026-11-26 21:00:23.992728+00', NULL, NULL, NULL),
	('mail.verification', '01a219a8-d196-79fe-bca9-20358bff4ce5', 'done', 1, 0, '2026-11-26 21:00:23.997347+00', '61a3321b-e3f1-4292-9959-4152d3c59d1f', NULL, '2026-11-26 21:00:23.937139+00', '2026-11-26 21:00:23.997348+00', NULL, NULL, NULL),
	('mail.verification', '01a219a8-d1a1-78cb-aea8-e9fe3edcfc8c', 'done', 1, 0, '2026-11-26 21:00:23.99955+00', '61a3321b-e3f1-4292-9959-4152d3c59d1f', NULL, '2026-11-26 21:00:23.932505+00', '2026-11-26 21:00:23.999551+00', NULL, NULL, NULL),
	('mail.verification', '01a219a8-d1b2-73f4-bc59-3384d8845ce7', 'uncertain', 1, 1, '2026-11-26 22:00:24.008085+00', '61a3321b-e3f1-4292-9959-4152d3c59d1f', 'submit mail: final dot: no answer', '2026-11-26 21:00:23.936222+00', '2026-11-26 21:00:24.008085+00', NULL, NULL, NULL),
	('mail.verification', '01a219a8-d1cd-7505-825d-877dba8540cf', 'done', 1, 0, '2026-11-26 21:00:24.013889+00', 'd3e6e8bf-3e0c-4d54-a8e9-9b86ad3e4eb3', NULL, '2026-11-26 21:00:23.98035+00', '2026-11-26 21:00:24.013889+00', NULL, NULL, NULL),
	('mail.verification', '01a219a8-d1e8-7a6c-8ede-a40ae0212008', 'done', 1, 0, '2026-11-26 21:00:24.025682+00', 'd3e6e8bf-3e0c-4d54-a8e9-9b86ad3e4eb3', NULL, '2026-11-26 21:00:23.96674+00', '2026-11-26 21:00:24.025683+00', NULL, NULL, NULL),
	('mail.verification', '01a219a8-d26a-73ab-8a14-db6163edf987', 'done', 1, 0, '2026-11-26 21:00:24.065445+00', 'ad93962a-0737-4c5e-8abb-0745f7f5ffd4', NULL, '2026-11-26 21:00:24.052025+00', '2026-11-26 21:00:24.065445+00', NULL, NULL, NULL),
	('mail.verification', '01a219a8-d26b-7ceb-920f-e7d837c3b8a2', 'done', 1, 0, '2026-11-26 21:00:25.67942+00', '8aec85c8-6b11-4fbf-9baf-6d2dec8dc0d5', NULL, '2026-11-26 21:00:25.658773+00', '2026-11-26 21:00:25.67942+00', NULL, NULL, NULL),
	('mail.verification', '01a219a8-d1c4-7df1-9367-5ea42a65830c', 'pending', 1, 0, '2026-11-26 21:00:26.204386+00', 'd3e6e8bf-3e0c-4d54-a8e9-9b86ad3e4eb3', 'submit mail: rcpt to: 451 4.0.0', '2026-11-26 21:00:23.966664+00', NULL, NULL, NULL, NULL),
	('mail.verification', '01a219a8-d1b6-7d98-917d-9a0608e929a2', 'claimed', 2, 0, '2026-11-26 21:01:26.208283+00', 'd6f3afc7-ae35-4104-86b0-c9503c61809f', 'submit mail: rcpt to: 451 4.0.0', '2026-11-26 21:00:23.942522+00', NULL, NULL, NULL, NULL),
	('mail.verification', '01a219a8-d1bc-7915-9b3d-862dc2c0f288', 'submitting', 2, 0, '2026-11-26 21:01:26.212699+00', 'd6f3afc7-ae35-4104-86b0-c9503c61809f', 'submit mail: rcpt to: 451 4.0.0', '2026-11-26 21:00:23.937014+00', NULL, NULL, NULL, NULL);

INSERT INTO public.mail VALUES
	('01a219a8-d1de-7e5d-ac33-ac2462d4b5d5', '01a219a8-d177-730d-b845-541b5dcfe877', 'verification', '01a219a8-d177-722b-91c0-e9891462a896', 'bob@example.org', '2026-11-26 21:00:23.9085+00', '01a219a8-d176-79fb-a727-a21c8385a582', '00-c9f99832888e65f82ecc8bc3a0415910-5e1f87cfdfca0a96-01', NULL),
	('01a219a8-d1ea-7598-ad3b-1632d2b9d6fe', '01a219a8-d15a-735b-a1c8-2c95aa9e72ed', 'verification', '01a219a8-d15a-71af-ba6d-a7f67748488d', 'ada@example.org', '2026-11-26 21:00:23.927612+00', '01a219a8-d0f8-779a-8851-0d6cd7db95c8', '00-9d25a3f93b91b780c65eb994b80679b9-44b4c2e794f93311-01', NULL),
	('01a219a8-d1ea-75ad-a965-cb6af77db6f0', '01a219a8-d186-7bc1-b6ba-6e2318c5c76c', 'verification', '01a219a8-d186-7b6a-a637-eb9efb179872', 'dora@example.org', '2026-11-26 21:00:23.929712+00', '01a219a8-d183-7dae-8370-10e53580eaa5', '00-344acebdc8aeea565abd2a4692308450-57db05074568221e-01', NULL),
	('01a219a8-d1e9-76c6-b9c7-b95ed7a1d71b', '01a219a8-d1a1-78cb-aea8-e9fe3edcfc8c', 'verification', '01a219a8-d1a1-780a-a486-7664f1472f20', 'frank@example.org', '2026-11-26 21:00:23.932438+00', '01a219a8-d19f-7c9f-a689-ff26513db744', '00-57f95693fb2e735b488c6b1afdc7c7f1-971eb86dd4c51c42-01', NULL),
	('01a219a8-d1fa-78da-b915-7445f9ab8dfe', '01a219a8-d1b2-73f4-bc59-3384d8845ce7', 'verification', '01a219a8-d1b2-7336-b793-f90b552f98e9', 'cut@example.org', '2026-11-26 21:00:23.936154+00', '01a219a8-d1b1-7841-b1e6-f83310983a13', '00-e7213cd76677e9669a1972d866b3e53a-2d24f3f629d26a06-01', NULL),
	('01a219a8-d1fa-78ee-9cea-1db60078796d', '01a219a8-d1bc-7915-9b3d-862dc2c0f288', 'verification', '01a219a8-d1bc-787e-8f17-90ea55cdc218', 'later2@example.org', '2026-11-26 21:00:23.936995+00', '01a219a8-d1ba-7eaa-9573-80660bd4b5e0', '00-d54587401b6e328d90a79b0dd8aabee7-ce744b6ff9b6ab68-01', NULL),
	('01a219a8-d1f8-7b8d-be18-222ca449a0c4', '01a219a8-d196-79fe-bca9-20358bff4ce5', 'verification', '01a219a8-d196-78ed-915b-86c3a6d5e08b', 'eve@example.org', '2026-11-26 21:00:23.934493+00', '01a219a8-d194-718a-9928-90b6822d0c3c', '00-bbb4f3f64cb5e84b705301cc92aa76e6-97f6be02a7f316f1-01', NULL),
	('01a219a8-d1e9-76df-a3c7-be37a66c546d', '01a219a8-d1a9-755e-91bd-76809d3eeda6', 'verification', '01a219a8-d1a9-74a1-96ef-0c65c25287df', 'refused@example.org', '2026-11-26 21:00:23.938266+00', '01a219a8-d1a9-7083-a039-8375b664cad6', '00-f037ae5d2b2f09649d7e39bf807b218f-636b682f8d0968a9-01', NULL),
	('01a219a8-d1f2-7176-8dca-ce07b5ffa344', '01a219a8-d17f-72b2-bd01-3cd135dd3359', 'verification', '01a219a8-d17f-71fe-aa72-afade8568b03', 'carl@example.org', '2026-11-26 21:00:23.941482+00', '01a219a8-d17c-78ef-b44d-a6f420481afa', '00-f3f7afd3c80010e5152474cdd891c6a5-4e57468aa7420d82-01', NULL),
	('01a219a8-d1f2-718a-85bc-6f8a9ce20d0c', '01a219a8-d1b6-7d98-917d-9a0608e929a2', 'verification', '01a219a8-d1b6-7d0d-95f9-586760e0d216', 'later1@example.org', '2026-11-26 21:00:23.942501+00', '01a219a8-d1b6-792c-9ead-b8bb22dc56fe', '00-df72ef0d9a9a0343de8ec9cd509f39b5-aa7eeb83008884a3-01', NULL),
	('01a219a8-d21a-77d5-9f2b-8f54aa53a563', '01a219a8-d1c4-7df1-9367-5ea42a65830c', 'verification', '01a219a8-d1c4-7d57-ae73-766f977699d6', 'later3@example.org', '2026-11-26 21:00:23.966635+00', '01a219a8-d1c3-7dc8-bc5e-dbed2819e3a5', '00-5b35aff8ff8c08fe4ecb7d78144fef07-691358e9ca72eb91-01', NULL),
	('01a219a8-d21a-77e8-91ef-bfdff6c86748', '01a219a8-d1e8-7a6c-8ede-a40ae0212008', 'verification', '01a219a8-d1e8-79ca-87f3-94d842c90292', 'doomed2@example.org', '2026-11-26 21:00:23.966726+00', '01a219a8-d1e5-7102-b76c-50f56b519c3e', '00-b3f24087eb5866a1a3024a82362238fd-ea1a58361bf4a8fd-01', NULL),
	('01a219a8-d224-73ea-9af2-be8f376c0b98', '01a219a8-d1cd-7505-825d-877dba8540cf', 'verification', '01a219a8-d1cd-7469-b10c-b378d2d140e6', 'doomed1@example.org', '2026-11-26 21:00:23.980321+00', '01a219a8-d1cc-7c62-9262-d79fe7cf9fd3', '00-24b54549a3a39adabaa5e07858b7f649-b0945d923bba9cd9-01', NULL),
	('01a219a8-d270-78ad-8f6b-cd34fcc502e4', '01a219a8-d26a-73ab-8a14-db6163edf987', 'verification', '01a219a8-d26a-733a-b281-4e61ea891cf2', '01a219a8-d26a-733a-b281-4e61ea891cf2@example.org', '2026-11-26 21:00:24.051993+00', '01a219a8-d26a-73ab-8a14-db6163edf987', NULL, NULL),
	('01a219a8-d8ba-7491-88c3-ba1fffb20121', '01a219a8-d26b-7ceb-920f-e7d837c3b8a2', 'verification', 'd56565c1-0cdb-4e9c-9fef-bab1b7478c81', 's3@example.org', '2026-11-26 21:00:25.658708+00', '01a219a8-d26b-7ceb-920f-e7d837c3b8a2', NULL, NULL);

INSERT INTO public.migration_audit VALUES
	(1, 0, true, '2026-11-26 21:00:21.256997'),
	(2, 1, true, '2026-11-26 21:00:21.263618');

INSERT INTO public.migration_inbox VALUES
	(1, 0, true, '2026-11-26 21:00:21.384337'),
	(2, 1, true, '2026-11-26 21:00:21.398895'),
	(3, 2, true, '2026-11-26 21:00:21.470237'),
	(4, 3, true, '2026-11-26 21:00:21.47911'),
	(5, 4, true, '2026-11-26 21:00:21.482271'),
	(6, 5, true, '2026-11-26 21:00:21.487519'),
	(7, 6, true, '2026-11-26 21:00:21.507224');

INSERT INTO public.migration_lease VALUES
	(1, 0, true, '2026-11-26 21:00:21.524294'),
	(2, 1, true, '2026-11-26 21:00:21.534049'),
	(3, 2, true, '2026-11-26 21:00:21.548788'),
	(4, 3, true, '2026-11-26 21:00:21.549954');

INSERT INTO public.migration_notification VALUES
	(1, 0, true, '2026-11-26 21:00:21.55936'),
	(2, 1, true, '2026-11-26 21:00:21.564976'),
	(3, 2, true, '2026-11-26 21:00:21.58133');

INSERT INTO public.migration_outbox VALUES
	(1, 0, true, '2026-11-26 21:00:21.274659'),
	(2, 1, true, '2026-11-26 21:00:21.283841'),
	(3, 2, true, '2026-11-26 21:00:21.342084'),
	(4, 3, true, '2026-11-26 21:00:21.34975'),
	(5, 4, true, '2026-11-26 21:00:21.350823'),
	(6, 5, true, '2026-11-26 21:00:21.35153'),
	(7, 6, true, '2026-11-26 21:00:21.353716'),
	(8, 7, true, '2026-11-26 21:00:21.372434');

INSERT INTO public.operator_action OVERRIDING SYSTEM VALUE VALUES
	(1, '2026-11-26 21:00:25.622785+00', 'grace', 'discard', 'nobody needs it', 'dead_letter', '2', 'waiting', 'discarded', 1, '{}'),
	(2, '2026-11-26 21:00:25.635246+00', 'grace', 'edit', 'mended', 'dead_letter', '6', 'waiting', 'waiting', 1, '{}'),
	(3, '2026-11-26 21:00:25.663472+00', 'grace', 'replay', 'mended', 'dead_letter', '6', 'waiting', 'replayed', 1, '{"outcome": "applied"}');

INSERT INTO public.outbox_1 VALUES
	('884', 1, '01a219a8-d22f-7259-847e-339324cf308d', 'com.example.notification.verification-email-sent.v1', '/twinbox/notification', 'notification.mails.v1', '01a219a8-d186-7b6a-a637-eb9efb179872', 1, 'https://example.com/twinbox/events/verification-email-sent.v1.json', '2026-11-26 21:00:23.975878+00', '{"traceparent": "00-344acebdc8aeea565abd2a4692308450-57db05074568221e-01", "ce_causationid": "01a219a8-d186-7bc1-b6ba-6e2318c5c76c", "ce_correlationid": "01a219a8-d183-7dae-8370-10e53580eaa5"}', '\x7b22757365725f6964223a2230316132313961382d643138362d376236612d613633372d656239656662313739383732222c226d61696c5f6964223a2230316132313961382d643165612d373561642d613936352d636236616637376462366630222c2273656e745f6174223a22323032362d31312d32365432313a30303a32332e3937353837385a227d'),
	('889', 2, '01a219a8-d230-7142-a918-11a431f2a951', 'com.example.notification.verification-email-sent.v1', '/twinbox/notification', 'notification.mails.v1', '01a219a8-d177-722b-91c0-e9891462a896', 1, 'https://example.com/twinbox/events/verification-email-sent.v1.json', '2026-11-26 21:00:23.982231+00', '{"traceparent": "00-c9f99832888e65f82ecc8bc3a0415910-5e1f87cfdfca0a96-01", "ce_causationid": "01a219a8-d177-730d-b845-541b5dcfe877", "ce_correlationid": "01a219a8-d176-79fb-a727-a21c8385a582"}', '\x7b22757365725f6964223a2230316132313961382d643137372d373232622d393163302d653938393134363261383936222c226d61696c5f6964223a2230316132313961382d643164652d376535642d616333332d616332343632643462356435222c2273656e745f6174223a22323032362d31312d32365432313a30303a32332e3938323233315a227d'),
	('888', 3, '01a219a8-d22f-71b7-a84a-311600152441', 'com.example.notification.verification-email-sent.v1', '/twinbox/notification', 'notification.mails.v1', '01a219a8-d15a-71af-ba6d-a7f67748488d', 1, 'https://example.com/twinbox/events/verification-email-sent.v1.json', '2026-11-26 21:00:23.980031+00', '{"traceparent": "00-9d25a3f93b91b780c65eb994b80679b9-44b4c2e794f93311-01", "ce_causationid": "01a219a8-d15a-735b-a1c8-2c95aa9e72ed", "ce_correlationid": "01a219a8-d0f8-779a-8851-0d6cd7db95c8"}', '\x7b22757365725f6964223a2230316132313961382d643135612d373161662d626136642d613766363737343834383864222c226d61696c5f6964223a2230316132313961382d643165612d373539382d616433622d313633326432623964366665222c2273656e745f6174223a22323032362d31312d32365432313a30303a32332e3938303033315a227d'),
	('900', 4, '01a219a8-d239-77f8-a953-19a7d2323ac1', 'com.example.notification.verification-email-sent.v1', '/twinbox/notification', 'notification.mails.v1', '01a219a8-d17f-71fe-aa72-afade8568b03', 1, 'https://example.com/twinbox/events/verification-email-sent.v1.json', '2026-11-26 21:00:23.991424+00', '{"traceparent": "00-f3f7afd3c80010e5152474cdd891c6a5-4e57468aa7420d82-01", "ce_causationid": "01a219a8-d17f-72b2-bd01-3cd135dd3359", "ce_correlationid": "01a219a8-d17c-78ef-b44d-a6f420481afa"}', '\x7b22757365725f6964223a2230316132313961382d643137662d373166652d616137322d616661646538353638623033222c226d61696c5f6964223a2230316132313961382d643166322d373137362d386463612d636530376235666661333434222c2273656e745f6174223a22323032362d31312d32365432313a30303a32332e3939313432345a227d'),
	('907', 5, '01a219a8-d23d-78c6-a143-cf34ef77a5c5', 'com.example.notification.verification-email-sent.v1', '/twinbox/notification', 'notification.mails.v1', '01a219a8-d196-78ed-915b-86c3a6d5e08b', 1, 'https://example.com/twinbox/events/verification-email-sent.v1.json', '2026-11-26 21:00:23.997348+00', '{"traceparent": "00-bbb4f3f64cb5e84b705301cc92aa76e6-97f6be02a7f316f1-01", "ce_causationid": "01a219a8-d196-79fe-bca9-20358bff4ce5", "ce_correlationid": "01a219a8-d194-718a-9928-90b6822d0c3c"}', '\x7b22757365725f6964223a2230316132313961382d643139362d373865642d393135622d383663336136643565303862222c226d61696c5f6964223a2230316132313961382d643166382d376238642d626531382d323232636134343961306334222c2273656e745f6174223a22323032362d31312d32365432313a30303a32332e3939373334385a227d'),
	('909', 6, '01a219a8-d241-752d-9ffc-7c4a95ac880d', 'com.example.notification.verification-email-sent.v1', '/twinbox/notification', 'notification.mails.v1', '01a219a8-d1a1-780a-a486-7664f1472f20', 1, 'https://example.com/twinbox/events/verification-email-sent.v1.json', '2026-11-26 21:00:23.999551+00', '{"traceparent": "00-57f95693fb2e735b488c6b1afdc7c7f1-971eb86dd4c51c42-01", "ce_causationid": "01a219a8-d1a1-78cb-aea8-e9fe3edcfc8c", "ce_correlationid": "01a219a8-d19f-7c9f-a689-ff26513db744"}', '\x7b22757365725f6964223a2230316132313961382d643161312d373830612d613438362d373636346631343732663230222c226d61696c5f6964223a2230316132313961382d643165392d373663362d623963372d623935656437613164373162222c2273656e745f6174223a22323032362d31312d32365432313a30303a32332e3939393535315a227d'),
	('928', 7, '01a219a8-d250-764e-b800-8a685863bfbd', 'com.example.notification.verification-email-sent.v1', '/twinbox/notification', 'notification.mails.v1', '01a219a8-d1cd-7469-b10c-b378d2d140e6', 1, 'https://example.com/twinbox/events/verification-email-sent.v1.json', '2026-11-26 21:00:24.013889+00', '{"traceparent": "00-24b54549a3a39adabaa5e07858b7f649-b0945d923bba9cd9-01", "ce_causationid": "01a219a8-d1cd-7505-825d-877dba8540cf", "ce_correlationid": "01a219a8-d1cc-7c62-9262-d79fe7cf9fd3"}', '\x7b22757365725f6964223a2230316132313961382d643163642d373436392d623130632d623337386432643134306536222c226d61696c5f6964223a2230316132313961382d643232342d373365612d396166322d626538663337366330623938222c2273656e745f6174223a22323032362d31312d32365432313a30303a32342e3031333838395a227d'),
	('937', 8, '01a219a8-d259-7e5d-9729-b0e29fdaedb4', 'com.example.notification.verification-email-sent.v1', '/twinbox/notification', 'notification.mails.v1', '01a219a8-d1e8-79ca-87f3-94d842c90292', 1, 'https://example.com/twinbox/events/verification-email-sent.v1.json', '2026-11-26 21:00:24.025683+00', '{"traceparent": "00-b3f24087eb5866a1a3024a82362238fd-ea1a58361bf4a8fd-01", "ce_causationid": "01a219a8-d1e8-7a6c-8ede-a40ae0212008", "ce_correlationid": "01a219a8-d1e5-7102-b76c-50f56b519c3e"}', '\x7b22757365725f6964223a2230316132313961382d643165382d373963612d383766332d393464383432633930323932222c226d61696c5f6964223a2230316132313961382d643231612d373765382d393165662d626664666636633836373438222c2273656e745f6174223a22323032362d31312d32365432313a30303a32342e3032353638335a227d'),
	('957', 9, '01a219a8-d278-7a0e-8842-33331c11a529', 'record', '/', 'dlq.twinbox.e2e-9aad4afb.notification.users.customer.users.v1', 'someone-2', 1, NULL, '2026-11-26 21:00:24.056659+00', '{"record_wire": "eyJLZXkiOiJjMjl0Wlc5dVpTMHkiLCJIZWFkZXJzIjpbeyJuYW1lIjoiY2VfaWQiLCJ2YWx1ZSI6Ik1ERmhNakU1WVRndFpESTJZaTAzWWpnNUxUa3lZakV0Tm1FM1pUY3dORGhpWWpReiJ9LHsibmFtZSI6Il93YXRlcm1pbGxfbWVzc2FnZV91dWlkIiwidmFsdWUiOiJNREZoTWpFNVlUZ3RaREkyWWkwM1lqZzVMVGt5WWpFdE5tRTNaVGN3TkRoaVlqUXoifSx7Im5hbWUiOiJjZV9zb3VyY2UiLCJ2YWx1ZSI6IkwyVnNjMlYzYUdWeVpRPT0ifSx7Im5hbWUiOiJjZV90eXBlIiwidmFsdWUiOiJZMjl0TG1WNFlXMXdiR1V1WTNWemRHOXRaWEl1ZFhObGNpMXlaV2RwYzNSbGNtVmtMbll4In0seyJuYW1lIjoiY2Vfc3BlY3ZlcnNpb24iLCJ2YWx1ZSI6Ik1TNHcifSx7Im5hbWUiOiJjZV90aW1lIiwidmFsdWUiOiJNakF5Tmkwd01TMHdNbFF3TXpvd05Eb3dOVm89In0seyJuYW1lIjoiY2Vfc3ViamVjdCIsInZhbHVlIjoiYzI5dFpXOXVaUzB5In0seyJuYW1lIjoiY2VfYWdncmVnYXRldmVyc2lvbiIsInZhbHVlIjoiTVE9PSJ9LHsibmFtZSI6ImNvbnRlbnQtdHlwZSIsInZhbHVlIjoiWVhCd2JHbGpZWFJwYjI0dmFuTnZiZz09In0seyJuYW1lIjoiX19kbHEuZXJyb3JzLnRvcGljIiwidmFsdWUiOiJZM1Z6ZEc5dFpYSXVkWE5sY25NdWRqRT0ifSx7Im5hbWUiOiJfX2RscS5lcnJvcnMucGFydGl0aW9uIiwidmFsdWUiOiJNQT09In0seyJuYW1lIjoiX19kbHEuZXJyb3JzLm9mZnNldCIsInZhbHVlIjoiTVE9PSJ9LHsibmFtZSI6Il9fZGxxLmVycm9ycy5ncm91cCIsInZhbHVlIjoiZEhkcGJtSnZlQzVsTW1VdE9XRmhaRFJoWm1JdWJtOTBhV1pwWTJGMGFXOXVMblZ6WlhKeiJ9LHsibmFtZSI6Il9fZGxxLmVycm9ycy5kZWxpdmVyeS5jb3VudCIsInZhbHVlIjoiTVE9PSJ9LHsibmFtZSI6Il9fZGxxLmVycm9ycy5tZXNzYWdlIiwidmFsdWUiOiJZMmhsWTJzZ1pYWmxiblE2SUdsdWRtRnNhV1JmYW5OdmJqb2dkR2hsSUhCaGVXeHZZV1FnYVhNZ2JtOTBJRzl1WlNCS1UwOU9JR1J2WTNWdFpXNTBJR2x1SUZWVVJpMDQifSx7Im5hbWUiOiJkbHFfZXJyb3JfY2xhc3MiLCJ2YWx1ZSI6ImNHVnliV0Z1Wlc1MCJ9LHsibmFtZSI6ImRscV9lcnJvcl9jb2RlIiwidmFsdWUiOiJhVzUyWVd4cFpGOXFjMjl1In0seyJuYW1lIjoiZGxxX2F0dGVtcHRzIiwidmFsdWUiOiJNUT09In0seyJuYW1lIjoiZGxxX2ZpcnN0X2ZhaWxlZF9hdCIsInZhbHVlIjoiTWpBeU5pMHhNUzB5TmxReU1Ub3dNRG95TkM0d05UUXlOVFExT0RKYSJ9LHsibmFtZSI6ImRscV9yZXBsYXlfY291bnQiLCJ2YWx1ZSI6Ik1BPT0ifSx7Im5hbWUiOiJkbHFfaGFuZGxlciIsInZhbHVlIjoiYm05MGFXWnBZMkYwYVc5dUxuVnpaWEp6In1dfQ=="}', '\x67617262616765'),
	('966', 11, '01a219a8-d281-7d4b-9da1-e3c48ce5c581', 'com.example.notification.verification-email-sent.v1', '/twinbox/notification', 'notification.mails.v1', '01a219a8-d26a-733a-b281-4e61ea891cf2', 1, 'https://example.com/twinbox/events/verification-email-sent.v1.json', '2026-11-26 21:00:24.065445+00', '{"ce_causationid": "01a219a8-d26a-73ab-8a14-db6163edf987", "ce_correlationid": "01a219a8-d26a-73ab-8a14-db6163edf987"}', '\x7b22757365725f6964223a2230316132313961382d643236612d373333612d623238312d346536316561383931636632222c226d61696c5f6964223a2230316132313961382d643237302d373861642d386636622d636433346663633530326534222c2273656e745f6174223a22323032362d31312d32365432313a30303a32342e3036353434355a227d'),
	('958', 10, '01a219a8-d27a-72db-a11a-41e926d9f236', 'record', '/', 'dlq.twinbox.e2e-9aad4afb.notification.users.customer.users.v1', 'someone-0', 1, NULL, '2026-11-26 21:00:24.058187+00', '{"record_wire": "eyJLZXkiOiJjMjl0Wlc5dVpTMHciLCJIZWFkZXJzIjpbeyJuYW1lIjoiY2VfaWQiLCJ2YWx1ZSI6Ik1ERmhNakU1WVRndFpESTJZaTAzTjJKaExUaGtNak10Tm1GbE5UYzVPR1F5TVRndyJ9LHsibmFtZSI6Il93YXRlcm1pbGxfbWVzc2FnZV91dWlkIiwidmFsdWUiOiJNREZoTWpFNVlUZ3RaREkyWWkwM04ySmhMVGhrTWpNdE5tRmxOVGM1T0dReU1UZ3cifSx7Im5hbWUiOiJjZV9zb3VyY2UiLCJ2YWx1ZSI6IkwyVnNjMlYzYUdWeVpRPT0ifSx7Im5hbWUiOiJjZV90eXBlIiwidmFsdWUiOiJZMjl0TG1WNFlXMXdiR1V1WTNWemRHOXRaWEl1ZFhObGNpMXlaV2RwYzNSbGNtVmtMbll4In0seyJuYW1lIjoiY2Vfc3BlY3ZlcnNpb24iLCJ2YWx1ZSI6Ik1TNHcifSx7Im5hbWUiOiJjZV90aW1lIiwidmFsdWUiOiJNakF5Tmkwd01TMHdNbFF3TXpvd05Eb3dOVm89In0seyJuYW1lIjoiY2Vfc3ViamVjdCIsInZhbHVlIjoiYzI5dFpXOXVaUzB3In0seyJuYW1lIjoiY2VfYWdncmVnYXRldmVyc2lvbiIsInZhbHVlIjoiTVE9PSJ9LHsibmFtZSI6ImNvbnRlbnQtdHlwZSIsInZhbHVlIjoiWVhCd2JHbGpZWFJwYjI0dmFuTnZiZz09In0seyJuYW1lIjoiX19kbHEuZXJyb3JzLnRvcGljIiwidmFsdWUiOiJZM1Z6ZEc5dFpYSXVkWE5sY25NdWRqRT0ifSx7Im5hbWUiOiJfX2RscS5lcnJvcnMucGFydGl0aW9uIiwidmFsdWUiOiJOQT09In0seyJuYW1lIjoiX19kbHEuZXJyb3JzLm9mZnNldCIsInZhbHVlIjoiTkE9PSJ9LHsibmFtZSI6Il9fZGxxLmVycm9ycy5ncm91cCIsInZhbHVlIjoiZEhkcGJtSnZlQzVsTW1VdE9XRmhaRFJoWm1JdWJtOTBhV1pwWTJGMGFXOXVMblZ6WlhKeiJ9LHsibmFtZSI6Il9fZGxxLmVycm9ycy5kZWxpdmVyeS5jb3VudCIsInZhbHVlIjoiTVE9PSJ9LHsibmFtZSI6Il9fZGxxLmVycm9ycy5tZXNzYWdlIiwidmFsdWUiOiJZMmhsWTJzZ1pYWmxiblE2SUhOamFHVnRZVjkyYVc5c1lYUnBiMjQ2SUM4Z2NtVnhkV2x5WldRc0lDOTFjMlZ5WDJsa0lIUjVjR1U9In0seyJuYW1lIjoiZGxxX2Vycm9yX2NsYXNzIiwidmFsdWUiOiJjR1Z5YldGdVpXNTAifSx7Im5hbWUiOiJkbHFfZXJyb3JfY29kZSIsInZhbHVlIjoiYzJOb1pXMWhYM1pwYjJ4aGRHbHZiZz09In0seyJuYW1lIjoiZGxxX2F0dGVtcHRzIiwidmFsdWUiOiJNUT09In0seyJuYW1lIjoiZGxxX2ZpcnN0X2ZhaWxlZF9hdCIsInZhbHVlIjoiTWpBeU5pMHhNUzB5TmxReU1Ub3dNRG95TkM0d05UUXpOVFl6TlRWYSJ9LHsibmFtZSI6ImRscV9yZXBsYXlfY291bnQiLCJ2YWx1ZSI6Ik1BPT0ifSx7Im5hbWUiOiJkbHFfaGFuZGxlciIsInZhbHVlIjoiYm05MGFXWnBZMkYwYVc5dUxuVnpaWEp6In1dfQ=="}', '\x7b22757365725f6964223a377d'),
	('967', 12, '01a219a8-d281-7f17-8a77-cded5959f7ed', 'record', '/', 'dlq.twinbox.e2e-9aad4afb.notification.users.customer.users.v1', 'someone-1', 1, NULL, '2026-11-26 21:00:24.065989+00', '{"record_wire": "eyJLZXkiOiJjMjl0Wlc5dVpTMHgiLCJIZWFkZXJzIjpbeyJuYW1lIjoiY2VfaWQiLCJ2YWx1ZSI6Ik1ERmhNakU1WVRndFpESTJZaTAzWVRnMkxUazVNamN0TVRZM01UUmlNalU1TXpobCJ9LHsibmFtZSI6Il93YXRlcm1pbGxfbWVzc2FnZV91dWlkIiwidmFsdWUiOiJNREZoTWpFNVlUZ3RaREkyWWkwM1lUZzJMVGs1TWpjdE1UWTNNVFJpTWpVNU16aGwifSx7Im5hbWUiOiJjZV9zb3VyY2UiLCJ2YWx1ZSI6IkwyVnNjMlYzYUdWeVpRPT0ifSx7Im5hbWUiOiJjZV90eXBlIiwidmFsdWUiOiJZMjl0TG1WNFlXMXdiR1V1WTNWemRHOXRaWEl1ZFhObGNpMXlaV2RwYzNSbGNtVmtMbll4In0seyJuYW1lIjoiY2Vfc3BlY3ZlcnNpb24iLCJ2YWx1ZSI6Ik1TNHcifSx7Im5hbWUiOiJjZV90aW1lIiwidmFsdWUiOiJNakF5Tmkwd01TMHdNbFF3TXpvd05Eb3dOVm89In0seyJuYW1lIjoiY2Vfc3ViamVjdCIsInZhbHVlIjoiYzI5dFpXOXVaUzB4In0seyJuYW1lIjoiY2VfYWdncmVnYXRldmVyc2lvbiIsInZhbHVlIjoiTVE9PSJ9LHsibmFtZSI6ImNvbnRlbnQtdHlwZSIsInZhbHVlIjoiWVhCd2JHbGpZWFJwYjI0dmFuTnZiZz09In0seyJuYW1lIjoiX19kbHEuZXJyb3JzLnRvcGljIiwidmFsdWUiOiJZM1Z6ZEc5dFpYSXVkWE5sY25NdWRqRT0ifSx7Im5hbWUiOiJfX2RscS5lcnJvcnMucGFydGl0aW9uIiwidmFsdWUiOiJOQT09In0seyJuYW1lIjoiX19kbHEuZXJyb3JzLm9mZnNldCIsInZhbHVlIjoiTlE9PSJ9LHsibmFtZSI6Il9fZGxxLmVycm9ycy5ncm91cCIsInZhbHVlIjoiZEhkcGJtSnZlQzVsTW1VdE9XRmhaRFJoWm1JdWJtOTBhV1pwWTJGMGFXOXVMblZ6WlhKeiJ9LHsibmFtZSI6Il9fZGxxLmVycm9ycy5kZWxpdmVyeS5jb3VudCIsInZhbHVlIjoiTVE9PSJ9LHsibmFtZSI6Il9fZGxxLmVycm9ycy5tZXNzYWdlIiwidmFsdWUiOiJZMmhsWTJzZ1pYWmxiblE2SUhOamFHVnRZVjkyYVc5c1lYUnBiMjQ2SUM4Z2NtVnhkV2x5WldRc0lDOTFjMlZ5WDJsa0lIUjVjR1U9In0seyJuYW1lIjoiZGxxX2Vycm9yX2NsYXNzIiwidmFsdWUiOiJjR1Z5YldGdVpXNTAifSx7Im5hbWUiOiJkbHFfZXJyb3JfY29kZSIsInZhbHVlIjoiYzJOb1pXMWhYM1pwYjJ4aGRHbHZiZz09In0seyJuYW1lIjoiZGxxX2F0dGVtcHRzIiwidmFsdWUiOiJNUT09In0seyJuYW1lIjoiZGxxX2ZpcnN0X2ZhaWxlZF9hdCIsInZhbHVlIjoiTWpBeU5pMHhNUzB5TmxReU1Ub3dNRG95TkM0d05qUTROekE1T1RWYSJ9LHsibmFtZSI6ImRscV9yZXBsYXlfY291bnQiLCJ2YWx1ZSI6Ik1BPT0ifSx7Im5hbWUiOiJkbHFfaGFuZGxlciIsInZhbHVlIjoiYm05MGFXWnBZMkYwYVc5dUxuVnpaWEp6In1dfQ=="}', '\x7b22757365725f6964223a387d'),
	('974', 13, '01a219a8-d289-7d94-ada4-5c996ceca6bd', 'record', '/', 'dlq.twinbox.e2e-9aad4afb.notification.users.customer.users.v1', 'd56565c1-0cdb-4e9c-9fef-bab1b7478c81', 1, NULL, '2026-11-26 21:00:24.07389+00', '{"record_wire": "eyJLZXkiOiJaRFUyTlRZMVl6RXRNR05rWWkwMFpUbGpMVGxtWldZdFltRmlNV0kzTkRjNFl6Z3giLCJIZWFkZXJzIjpbeyJuYW1lIjoiY2VfaWQiLCJ2YWx1ZSI6Ik1ERmhNakU1WVRndFpESTJZaTAzWTJWaUxUa3lNR1l0WlRka09ETTNZek5pT0dFeSJ9LHsibmFtZSI6Il93YXRlcm1pbGxfbWVzc2FnZV91dWlkIiwidmFsdWUiOiJNREZoTWpFNVlUZ3RaREkyWWkwM1kyVmlMVGt5TUdZdFpUZGtPRE0zWXpOaU9HRXkifSx7Im5hbWUiOiJjZV9zb3VyY2UiLCJ2YWx1ZSI6IkwyVnNjMlYzYUdWeVpRPT0ifSx7Im5hbWUiOiJjZV90eXBlIiwidmFsdWUiOiJZMjl0TG1WNFlXMXdiR1V1WTNWemRHOXRaWEl1ZFhObGNpMXlaV2RwYzNSbGNtVmtMbll4In0seyJuYW1lIjoiY2Vfc3BlY3ZlcnNpb24iLCJ2YWx1ZSI6Ik1TNHcifSx7Im5hbWUiOiJjZV90aW1lIiwidmFsdWUiOiJNakF5Tmkwd01TMHdNbFF3TXpvd05Eb3dOVm89In0seyJuYW1lIjoiY2Vfc3ViamVjdCIsInZhbHVlIjoiWkRVMk5UWTFZekV0TUdOa1lpMDBaVGxqTFRsbVpXWXRZbUZpTVdJM05EYzRZemd4In0seyJuYW1lIjoiY2VfYWdncmVnYXRldmVyc2lvbiIsInZhbHVlIjoiTVE9PSJ9LHsibmFtZSI6ImNvbnRlbnQtdHlwZSIsInZhbHVlIjoiWVhCd2JHbGpZWFJwYjI0dmFuTnZiZz09In0seyJuYW1lIjoiX19kbHEuZXJyb3JzLnRvcGljIiwidmFsdWUiOiJZM1Z6ZEc5dFpYSXVkWE5sY25NdWRqRT0ifSx7Im5hbWUiOiJfX2RscS5lcnJvcnMucGFydGl0aW9uIiwidmFsdWUiOiJOQT09In0seyJuYW1lIjoiX19kbHEuZXJyb3JzLm9mZnNldCIsInZhbHVlIjoiTmc9PSJ9LHsibmFtZSI6Il9fZGxxLmVycm9ycy5ncm91cCIsInZhbHVlIjoiZEhkcGJtSnZlQzVsTW1VdE9XRmhaRFJoWm1JdWJtOTBhV1pwWTJGMGFXOXVMblZ6WlhKeiJ9LHsibmFtZSI6Il9fZGxxLmVycm9ycy5kZWxpdmVyeS5jb3VudCIsInZhbHVlIjoiTVE9PSJ9LHsibmFtZSI6Il9fZGxxLmVycm9ycy5tZXNzYWdlIiwidmFsdWUiOiJZMmhsWTJzZ1pYWmxiblE2SUhOamFHVnRZVjkyYVc5c1lYUnBiMjQ2SUM4Z2NtVnhkV2x5WldRc0lDOTFjMlZ5WDJsa0lIUjVjR1U9In0seyJuYW1lIjoiZGxxX2Vycm9yX2NsYXNzIiwidmFsdWUiOiJjR1Z5YldGdVpXNTAifSx7Im5hbWUiOiJkbHFfZXJyb3JfY29kZSIsInZhbHVlIjoiYzJOb1pXMWhYM1pwYjJ4aGRHbHZiZz09In0seyJuYW1lIjoiZGxxX2F0dGVtcHRzIiwidmFsdWUiOiJNUT09In0seyJuYW1lIjoiZGxxX2ZpcnN0X2ZhaWxlZF9hdCIsInZhbHVlIjoiTWpBeU5pMHhNUzB5TmxReU1Ub3dNRG95TkM0d056QTRNRFV3TkZvPSJ9LHsibmFtZSI6ImRscV9yZXBsYXlfY291bnQiLCJ2YWx1ZSI6Ik1BPT0ifSx7Im5hbWUiOiJkbHFfaGFuZGxlciIsInZhbHVlIjoiYm05MGFXWnBZMkYwYVc5dUxuVnpaWEp6In1dfQ=="}', '\x7b22757365725f6964223a397d'),
	('1044', 14, '01a219a8-d8d0-7225-82dd-dbd5f1198f9a', 'com.example.notification.verification-email-sent.v1', '/twinbox/notification', 'notification.mails.v1', 'd56565c1-0cdb-4e9c-9fef-bab1b7478c81', 1, 'https://example.com/twinbox/events/verification-email-sent.v1.json', '2026-11-26 21:00:25.67942+00', '{"ce_causationid": "01a219a8-d26b-7ceb-920f-e7d837c3b8a2", "ce_correlationid": "01a219a8-d26b-7ceb-920f-e7d837c3b8a2"}', '\x7b22757365725f6964223a2264353635363563312d306364622d346539632d396665662d626162316237343738633831222c226d61696c5f6964223a2230316132313961382d643862612d373439312d383863332d626131666666623230313231222c2273656e745f6174223a22323032362d31312d32365432313a30303a32352e36373934325a227d'),
	('1053', 15, '01a219a8-dae7-76d6-9032-1eaf0a66aebc', 'com.example.notification.verification-email-sent.v1', '/twinbox/notification', 'notification.mails.v1', '01a219a8-d1b2-7336-b793-f90b552f98e9', 1, 'https://example.com/twinbox/events/verification-email-sent.v1.json', '2026-11-26 21:00:26.215416+00', NULL, '\x7b22757365725f6964223a2230316132313961382d643162322d373333362d623739332d663930623535326639386539222c226d61696c5f6964223a2265383438643436662d653538342d343732312d393038652d343336653866363837623734222c2273656e745f6174223a22323032362d31312d32365432313a30303a32362e32313534325a227d');

INSERT INTO public.outbox_cursor VALUES
	('relay', 2, 'first-edition', '1970-01-01 00:00:00+00', 12, 7712587961069719984, '1045:1045:', 14, NULL, NULL, NULL, '{986,1046}', '{13,14}', 0, NULL, NULL, NULL, NULL, NULL, NULL, '1795726820.300961/16825', NULL, 2);

INSERT INTO public.outbox_key VALUES
	('notification.mails.v1', '01a219a8-d186-7b6a-a637-eb9efb179872', 1),
	('notification.mails.v1', '01a219a8-d177-722b-91c0-e9891462a896', 1),
	('notification.mails.v1', '01a219a8-d15a-71af-ba6d-a7f67748488d', 1),
	('notification.mails.v1', '01a219a8-d17f-71fe-aa72-afade8568b03', 1),
	('notification.mails.v1', '01a219a8-d196-78ed-915b-86c3a6d5e08b', 1),
	('notification.mails.v1', '01a219a8-d1a1-780a-a486-7664f1472f20', 1),
	('notification.mails.v1', '01a219a8-d1cd-7469-b10c-b378d2d140e6', 1),
	('notification.mails.v1', '01a219a8-d1e8-79ca-87f3-94d842c90292', 1),
	('dlq.twinbox.e2e-9aad4afb.notification.users.customer.users.v1', 'someone-2', 1),
	('dlq.twinbox.e2e-9aad4afb.notification.users.customer.users.v1', 'someone-0', 1),
	('notification.mails.v1', '01a219a8-d26a-733a-b281-4e61ea891cf2', 1),
	('dlq.twinbox.e2e-9aad4afb.notification.users.customer.users.v1', 'someone-1', 1),
	('dlq.twinbox.e2e-9aad4afb.notification.users.customer.users.v1', 'd56565c1-0cdb-4e9c-9fef-bab1b7478c81', 1),
	('notification.mails.v1', 'd56565c1-0cdb-4e9c-9fef-bab1b7478c81', 1),
	('notification.mails.v1', '01a219a8-d1b2-7336-b793-f90b552f98e9', 1);

INSERT INTO public.outbox_topic VALUES
	('notification.mails.v1', 6),
	('dlq.twinbox.e2e-9aad4afb.notification.users.customer.users.v1', 6);

SELECT pg_catalog.setval('public.dead_letter_id_seq', 6, true);

SELECT pg_catalog.setval('public.migration_audit_id_seq', 2, true);

SELECT pg_catalog.setval('public.migration_inbox_id_seq', 7, true);

SELECT pg_catalog.setval('public.migration_lease_id_seq', 4, true);

SELECT pg_catalog.setval('public.migration_notification_id_seq', 3, true);

SELECT pg_catalog.setval('public.migration_outbox_id_seq', 8, true);

SELECT pg_catalog.setval('public.operator_action_id_seq', 3, true);

SELECT pg_catalog.setval('public.outbox_position_seq', 15, true);

ALTER TABLE ONLY public.contact
    ADD CONSTRAINT contact_pkey PRIMARY KEY (user_id);

ALTER TABLE ONLY public.dead_letter
    ADD CONSTRAINT dead_letter_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.inbox
    ADD CONSTRAINT inbox_pkey PRIMARY KEY (consumer, event_id, event_time);

ALTER TABLE ONLY public.inbox_20261126
    ADD CONSTRAINT inbox_20261126_pkey PRIMARY KEY (consumer, event_id, event_time);

ALTER TABLE ONLY public.inbox_20261127
    ADD CONSTRAINT inbox_20261127_pkey PRIMARY KEY (consumer, event_id, event_time);

ALTER TABLE ONLY public.inbox_20261128
    ADD CONSTRAINT inbox_20261128_pkey PRIMARY KEY (consumer, event_id, event_time);

ALTER TABLE ONLY public.inbox_20261129
    ADD CONSTRAINT inbox_20261129_pkey PRIMARY KEY (consumer, event_id, event_time);

ALTER TABLE ONLY public.inbox_20261130
    ADD CONSTRAINT inbox_20261130_pkey PRIMARY KEY (consumer, event_id, event_time);

ALTER TABLE ONLY public.inbox_20261201
    ADD CONSTRAINT inbox_20261201_pkey PRIMARY KEY (consumer, event_id, event_time);

ALTER TABLE ONLY public.inbox_20261202
    ADD CONSTRAINT inbox_20261202_pkey PRIMARY KEY (consumer, event_id, event_time);

ALTER TABLE ONLY public.inbox_20261203
    ADD CONSTRAINT inbox_20261203_pkey PRIMARY KEY (consumer, event_id, event_time);

ALTER TABLE ONLY public.inbox_attempt
    ADD CONSTRAINT inbox_attempt_pkey PRIMARY KEY (consumer, topic, partition, record_offset);

ALTER TABLE ONLY public.inbox_foreign
    ADD CONSTRAINT inbox_foreign_pkey PRIMARY KEY (consumer, event_id, event_time);

ALTER TABLE ONLY public.inbox_future
    ADD CONSTRAINT inbox_future_pkey PRIMARY KEY (consumer, event_id, event_time);

ALTER TABLE ONLY public.inbox_horizon
    ADD CONSTRAINT inbox_horizon_pkey PRIMARY KEY (single);

ALTER TABLE ONLY public.inbox_janitor
    ADD CONSTRAINT inbox_janitor_pkey PRIMARY KEY (single);

ALTER TABLE ONLY public.inbox_owner
    ADD CONSTRAINT inbox_owner_pkey PRIMARY KEY (consumer, topic, partition);

ALTER TABLE ONLY public.inbox_passed
    ADD CONSTRAINT inbox_passed_pkey PRIMARY KEY (consumer, key, version);

ALTER TABLE ONLY public.inbox_past
    ADD CONSTRAINT inbox_past_pkey PRIMARY KEY (consumer, event_id, event_time);

ALTER TABLE ONLY public.inbox_pause
    ADD CONSTRAINT inbox_pause_pkey PRIMARY KEY (consumer);

ALTER TABLE ONLY public.inbox_position
    ADD CONSTRAINT inbox_position_pkey PRIMARY KEY (consumer, topic, partition);

ALTER TABLE ONLY public.inbox_watermark
    ADD CONSTRAINT inbox_watermark_pkey PRIMARY KEY (consumer, key);

ALTER TABLE ONLY public.lease
    ADD CONSTRAINT lease_pkey PRIMARY KEY (handler, event_id);

ALTER TABLE ONLY public.lease_watermark
    ADD CONSTRAINT lease_watermark_pkey PRIMARY KEY (handler, key);

ALTER TABLE ONLY public.mail
    ADD CONSTRAINT mail_event_id_template_recipient_key UNIQUE (event_id, template, recipient);

ALTER TABLE ONLY public.mail
    ADD CONSTRAINT mail_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.migration_audit
    ADD CONSTRAINT migration_audit_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.migration_inbox
    ADD CONSTRAINT migration_inbox_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.migration_lease
    ADD CONSTRAINT migration_lease_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.migration_notification
    ADD CONSTRAINT migration_notification_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.migration_outbox
    ADD CONSTRAINT migration_outbox_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.operator_action
    ADD CONSTRAINT operator_action_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY ("position");

ALTER TABLE ONLY public.outbox_1000001
    ADD CONSTRAINT outbox_1000001_pkey PRIMARY KEY ("position");

ALTER TABLE ONLY public.outbox_1
    ADD CONSTRAINT outbox_1_pkey PRIMARY KEY ("position");

ALTER TABLE ONLY public.outbox_2000001
    ADD CONSTRAINT outbox_2000001_pkey PRIMARY KEY ("position");

ALTER TABLE ONLY public.outbox_3000001
    ADD CONSTRAINT outbox_3000001_pkey PRIMARY KEY ("position");

ALTER TABLE ONLY public.outbox_4000001
    ADD CONSTRAINT outbox_4000001_pkey PRIMARY KEY ("position");

ALTER TABLE ONLY public.outbox_cursor
    ADD CONSTRAINT outbox_cursor_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.outbox_discarded
    ADD CONSTRAINT outbox_discarded_pkey PRIMARY KEY ("position");

ALTER TABLE ONLY public.outbox_given_id
    ADD CONSTRAINT outbox_given_id_pkey PRIMARY KEY (event_id);

ALTER TABLE ONLY public.outbox_held
    ADD CONSTRAINT outbox_held_pkey PRIMARY KEY (topic, key, "position");

ALTER TABLE ONLY public.outbox_key
    ADD CONSTRAINT outbox_key_pkey PRIMARY KEY (topic, key);

ALTER TABLE ONLY public.outbox_parked
    ADD CONSTRAINT outbox_parked_pkey PRIMARY KEY (topic, key);

ALTER TABLE ONLY public.outbox_partition
    ADD CONSTRAINT outbox_partition_pkey PRIMARY KEY (upper_bound);

ALTER TABLE ONLY public.outbox_scheduled
    ADD CONSTRAINT outbox_scheduled_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.outbox_topic
    ADD CONSTRAINT outbox_topic_pkey PRIMARY KEY (topic);

CREATE INDEX dead_letter_discarded ON public.dead_letter USING btree (consumer, key_start, version) WHERE (state = 'discarded'::text);

CREATE UNIQUE INDEX dead_letter_event ON public.dead_letter USING btree (consumer, event_id, sha256(payload));

CREATE INDEX dead_letter_holds ON public.dead_letter USING btree (consumer, key_start, version, id) WHERE ((state = 'waiting'::text) AND holds);

CREATE INDEX dead_letter_waiting ON public.dead_letter USING btree (consumer, key_start, version, id) WHERE (state = 'waiting'::text);

CREATE INDEX inbox_foreign_processed_at ON public.inbox_foreign USING btree (processed_at);

CREATE INDEX lease_done ON public.lease USING btree (handler, ended_at) WHERE (state = 'done'::text);

CREATE INDEX lease_open ON public.lease USING btree (handler, state, due_at) WHERE (state <> 'done'::text);

CREATE INDEX mail_user ON public.mail USING btree (user_id);

CREATE INDEX operator_action_subject ON public.operator_action USING btree (kind, subject, id);

CREATE INDEX outbox_event_id ON ONLY public.outbox USING brin (event_id) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX outbox_1000001_event_id_idx ON public.outbox_1000001 USING brin (event_id) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX outbox_key_and_cause ON ONLY public.outbox USING brin (key text_bloom_ops, ((headers ->> 'ce_causationid'::text)) text_bloom_ops) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX outbox_1000001_key_expr_idx ON public.outbox_1000001 USING brin (key text_bloom_ops, ((headers ->> 'ce_causationid'::text)) text_bloom_ops) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX outbox_1_event_id_idx ON public.outbox_1 USING brin (event_id) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX outbox_1_key_expr_idx ON public.outbox_1 USING brin (key text_bloom_ops, ((headers ->> 'ce_causationid'::text)) text_bloom_ops) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX outbox_2000001_event_id_idx ON public.outbox_2000001 USING brin (event_id) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX outbox_2000001_key_expr_idx ON public.outbox_2000001 USING brin (key text_bloom_ops, ((headers ->> 'ce_causationid'::text)) text_bloom_ops) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX outbox_3000001_event_id_idx ON public.outbox_3000001 USING brin (event_id) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX outbox_3000001_key_expr_idx ON public.outbox_3000001 USING brin (key text_bloom_ops, ((headers ->> 'ce_causationid'::text)) text_bloom_ops) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX outbox_4000001_event_id_idx ON public.outbox_4000001 USING brin (event_id) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX outbox_4000001_key_expr_idx ON public.outbox_4000001 USING brin (key text_bloom_ops, ((headers ->> 'ce_causationid'::text)) text_bloom_ops) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX outbox_given_id_added ON public.outbox_given_id USING btree (added_at);

CREATE INDEX outbox_held_position ON public.outbox_held USING btree ("position");

CREATE INDEX outbox_scheduled_due_at ON public.outbox_scheduled USING btree (due_at);

ALTER INDEX public.inbox_pkey ATTACH PARTITION public.inbox_20261126_pkey;

ALTER INDEX public.inbox_pkey ATTACH PARTITION public.inbox_20261127_pkey;

ALTER INDEX public.inbox_pkey ATTACH PARTITION public.inbox_20261128_pkey;

ALTER INDEX public.inbox_pkey ATTACH PARTITION public.inbox_20261129_pkey;

ALTER INDEX public.inbox_pkey ATTACH PARTITION public.inbox_20261130_pkey;

ALTER INDEX public.inbox_pkey ATTACH PARTITION public.inbox_20261201_pkey;

ALTER INDEX public.inbox_pkey ATTACH PARTITION public.inbox_20261202_pkey;

ALTER INDEX public.inbox_pkey ATTACH PARTITION public.inbox_20261203_pkey;

ALTER INDEX public.inbox_pkey ATTACH PARTITION public.inbox_foreign_pkey;

ALTER INDEX public.inbox_pkey ATTACH PARTITION public.inbox_future_pkey;

ALTER INDEX public.inbox_pkey ATTACH PARTITION public.inbox_past_pkey;

ALTER INDEX public.outbox_event_id ATTACH PARTITION public.outbox_1000001_event_id_idx;

ALTER INDEX public.outbox_key_and_cause ATTACH PARTITION public.outbox_1000001_key_expr_idx;

ALTER INDEX public.outbox_pkey ATTACH PARTITION public.outbox_1000001_pkey;

ALTER INDEX public.outbox_event_id ATTACH PARTITION public.outbox_1_event_id_idx;

ALTER INDEX public.outbox_key_and_cause ATTACH PARTITION public.outbox_1_key_expr_idx;

ALTER INDEX public.outbox_pkey ATTACH PARTITION public.outbox_1_pkey;

ALTER INDEX public.outbox_event_id ATTACH PARTITION public.outbox_2000001_event_id_idx;

ALTER INDEX public.outbox_key_and_cause ATTACH PARTITION public.outbox_2000001_key_expr_idx;

ALTER INDEX public.outbox_pkey ATTACH PARTITION public.outbox_2000001_pkey;

ALTER INDEX public.outbox_event_id ATTACH PARTITION public.outbox_3000001_event_id_idx;

ALTER INDEX public.outbox_key_and_cause ATTACH PARTITION public.outbox_3000001_key_expr_idx;

ALTER INDEX public.outbox_pkey ATTACH PARTITION public.outbox_3000001_pkey;

ALTER INDEX public.outbox_event_id ATTACH PARTITION public.outbox_4000001_event_id_idx;

ALTER INDEX public.outbox_key_and_cause ATTACH PARTITION public.outbox_4000001_key_expr_idx;

ALTER INDEX public.outbox_pkey ATTACH PARTITION public.outbox_4000001_pkey;
