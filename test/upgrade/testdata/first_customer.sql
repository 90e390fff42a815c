-- The database of the service customer, written by the first edition's code (commit a1d6716) on PostgreSQL 15. Dumped
-- with pg_dump --inserts --no-owner --no-privileges --no-comments. The tests in upgrade_test.go restore it.
--
-- Outbox: the relay stopped in the middle of a window, after three pages of five events. Two transactions were open when
-- it took a snapshot, and committed later: one is sent, the other is not and lies below the window's position. Two keys
-- are parked, one of them permanently. Each has held rows, and later rows that no window has passed. One held row is
-- discarded. Two events have the ids of their callers, and one id came twice. Two scheduled events are due (their times
-- were edited), one is not before 2150.
-- Users have several versions, with profiles and stored answers. Inbox: rows of all outcomes, watermarks, dead letters
-- in every state, one of them edited, two events parked behind a gap, a paused consumer. Operators' actions.
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

CREATE TABLE public.idempotency_key (
    scope text NOT NULL,
    key text NOT NULL,
    fingerprint bytea NOT NULL,
    status integer NOT NULL,
    body bytea NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    metadata jsonb
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

CREATE TABLE public.migration_customer (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);

ALTER TABLE public.migration_customer ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.migration_customer_id_seq
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

CREATE TABLE public.profile (
    user_id uuid NOT NULL,
    email text NOT NULL,
    name text NOT NULL,
    status text NOT NULL,
    version bigint NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.signup_allowance (
    id bytea NOT NULL,
    used_until timestamp with time zone NOT NULL
);

CREATE TABLE public.users (
    id uuid NOT NULL,
    email text NOT NULL,
    email_key text NOT NULL,
    name text NOT NULL,
    status text NOT NULL,
    version bigint NOT NULL,
    registered_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT users_status_check CHECK ((status = ANY (ARRAY['pending_verification'::text, 'verified'::text]))),
    CONSTRAINT users_version_check CHECK ((version > 0))
);

CREATE TABLE public.verification_mail (
    user_id uuid NOT NULL,
    mail_id text NOT NULL,
    sent_at timestamp with time zone NOT NULL
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

INSERT INTO public.dead_letter OVERRIDING SYSTEM VALUE VALUES
	(1, 'customer.profile', '01a219a8-d26b-7b89-92b1-6a7e7048bb43', 'com.example.customer.user-registered.v1', '\x736f6d656f6e652d32', DEFAULT, 1, '[["ce_id", "MDFhMjE5YTgtZDI2Yi03Yjg5LTkyYjEtNmE3ZTcwNDhiYjQz"], ["_watermill_message_uuid", "MDFhMjE5YTgtZDI2Yi03Yjg5LTkyYjEtNmE3ZTcwNDhiYjQz"], ["ce_source", "L2Vsc2V3aGVyZQ=="], ["ce_type", "Y29tLmV4YW1wbGUuY3VzdG9tZXIudXNlci1yZWdpc3RlcmVkLnYx"], ["ce_specversion", "MS4w"], ["ce_time", "MjAyNi0wMS0wMlQwMzowNDowNVo="], ["ce_subject", "c29tZW9uZS0y"], ["ce_aggregateversion", "MQ=="], ["content-type", "YXBwbGljYXRpb24vanNvbg=="]]', '\x67617262616765', 'twinbox.e2e-9aad4afb.customer.profile', 'customer.users.v1', 0, 1, '2026-11-26 21:00:24.043+00', NULL, NULL, '', NULL, 'permanent', 'invalid_json', 'check event: invalid_json: the payload is not one JSON document in UTF-8', 1, '2026-11-26 21:00:24.052305+00', '2026-11-26 21:00:24.054608+00', 'waiting', true, true, 0, '', NULL, false, false, NULL),
	(2, 'customer.profile', '01a219a8-d1cd-7505-825d-877dba8540cf', 'com.example.customer.user-registered.v1', '\x30316132313961382d643163642d373436392d623130632d623337386432643134306536', DEFAULT, 1, '[["ce_id", "MDFhMjE5YTgtZDFjZC03NTA1LTgyNWQtODc3ZGJhODU0MGNm"], ["_watermill_message_uuid", "MDFhMjE5YTgtZDFjZC03NTA1LTgyNWQtODc3ZGJhODU0MGNm"], ["ce_source", "L3R3aW5ib3gvY3VzdG9tZXI="], ["ce_type", "Y29tLmV4YW1wbGUuY3VzdG9tZXIudXNlci1yZWdpc3RlcmVkLnYx"], ["ce_specversion", "MS4w"], ["ce_time", "MjAyNi0xMS0yNlQyMTowMDoyMy44ODUyODla"], ["ce_subject", "MDFhMjE5YTgtZDFjZC03NDY5LWIxMGMtYjM3OGQyZDE0MGU2"], ["ce_aggregateversion", "MQ=="], ["ce_dataschema", "aHR0cHM6Ly9leGFtcGxlLmNvbS90d2luYm94L2V2ZW50cy91c2VyLXJlZ2lzdGVyZWQudjEuanNvbg=="], ["content-type", "YXBwbGljYXRpb24vanNvbg=="], ["traceparent", "MDAtMjRiNTQ1NDlhM2EzOWFkYWJhYTVlMDc4NThiN2Y2NDktYjA5NDVkOTIzYmJhOWNkOS0wMQ=="], ["ce_correlationid", "MDFhMjE5YTgtZDFjYy03YzYyLTkyNjItZDc5ZmU3Y2Y5ZmQz"]]', '\x7b22757365725f6964223a2230316132313961382d643163642d373436392d623130632d623337386432643134306536222c22656d61696c223a22646f6f6d656431406578616d706c652e6f7267222c226e616d65223a22446f6f6d65642031222c22726567697374657265645f6174223a22323032362d31312d32365432313a30303a32332e3838353238395a227d', 'twinbox.e2e-9aad4afb.customer.profile', 'customer.users.v1', 3, 2, '2026-11-26 21:00:23.912+00', NULL, NULL, '', NULL, 'unknown', 'handler_failed', 'ERROR: doomed (SQLSTATE P0001)', 5, '2026-11-26 21:00:23.975747+00', '2026-11-26 21:00:24.063236+00', 'waiting', true, true, 0, '', NULL, false, false, NULL),
	(3, 'customer.profile', '01a219a8-d26a-73ce-acab-4831445d9119', 'com.example.customer.email-verified.v1', '\x30316132313961382d643236612d373333612d623238312d346536316561383931636632', DEFAULT, 3, '[["ce_id", "MDFhMjE5YTgtZDI2YS03M2NlLWFjYWItNDgzMTQ0NWQ5MTE5"], ["_watermill_message_uuid", "MDFhMjE5YTgtZDI2YS03M2NlLWFjYWItNDgzMTQ0NWQ5MTE5"], ["ce_source", "L3R3aW5ib3gvY3VzdG9tZXI="], ["ce_type", "Y29tLmV4YW1wbGUuY3VzdG9tZXIuZW1haWwtdmVyaWZpZWQudjE="], ["ce_specversion", "MS4w"], ["ce_time", "MjAyNi0xMS0yNlQyMTowMDoyNC4wNDIyMjcyNzJa"], ["ce_subject", "MDFhMjE5YTgtZDI2YS03MzNhLWIyODEtNGU2MWVhODkxY2Yy"], ["ce_aggregateversion", "Mw=="], ["ce_dataschema", "aHR0cHM6Ly9leGFtcGxlLmNvbS90d2luYm94L2V2ZW50cy9lbWFpbC12ZXJpZmllZC52MS5qc29u"], ["content-type", "YXBwbGljYXRpb24vanNvbg=="]]', '\x7b22757365725f6964223a2230316132313961382d643236612d373333612d623238312d346536316561383931636632222c22656d61696c223a2230316132313961382d643236612d373333612d623238312d346536316561383931636632406578616d706c652e6f7267222c2276657269666965645f6174223a22323032362d31312d32365432313a30303a32342e3034323232373237325a227d', 'twinbox.e2e-9aad4afb.customer.profile', 'customer.users.v1', 2, 3, '2026-11-26 21:00:24.042+00', NULL, NULL, '', NULL, 'parked', 'version_gap', 'an earlier version of the key is missing', 1, '2026-11-26 21:00:24.064743+00', '2026-11-26 21:00:24.069738+00', 'waiting', true, true, 0, '', NULL, false, false, NULL),
	(5, 'customer.profile', '01a219a8-d26a-73d5-8d49-ef39f35fabd5', 'com.example.customer.user-renamed.v1', '\x30316132313961382d643236612d373333612d623238312d346536316561383931636632', DEFAULT, 4, '[["ce_id", "MDFhMjE5YTgtZDI2YS03M2Q1LThkNDktZWYzOWYzNWZhYmQ1"], ["_watermill_message_uuid", "MDFhMjE5YTgtZDI2YS03M2Q1LThkNDktZWYzOWYzNWZhYmQ1"], ["ce_source", "L3R3aW5ib3gvY3VzdG9tZXI="], ["ce_type", "Y29tLmV4YW1wbGUuY3VzdG9tZXIudXNlci1yZW5hbWVkLnYx"], ["ce_specversion", "MS4w"], ["ce_time", "MjAyNi0xMS0yNlQyMTowMDoyNC4wNDIyMjcyNzJa"], ["ce_subject", "MDFhMjE5YTgtZDI2YS03MzNhLWIyODEtNGU2MWVhODkxY2Yy"], ["ce_aggregateversion", "NA=="], ["ce_dataschema", "aHR0cHM6Ly9leGFtcGxlLmNvbS90d2luYm94L2V2ZW50cy91c2VyLXJlbmFtZWQudjEuanNvbg=="], ["content-type", "YXBwbGljYXRpb24vanNvbg=="]]', '\x7b22757365725f6964223a2230316132313961382d643236612d373333612d623238312d346536316561383931636632222c226e616d65223a224c6f76656c616365222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32342e3034323232373237325a227d', 'twinbox.e2e-9aad4afb.customer.profile', 'customer.users.v1', 2, 4, '2026-11-26 21:00:24.042+00', NULL, NULL, '', NULL, 'parked', 'parked_behind', 'an earlier event of the key is parked', 1, '2026-11-26 21:00:24.064759+00', '2026-11-26 21:00:24.073623+00', 'waiting', true, true, 0, '', NULL, false, false, NULL),
	(6, 'customer.profile', '01a219a8-d1da-71af-9769-f897b0fb74d7', 'com.example.customer.user-renamed.v1', '\x30316132313961382d643163642d373436392d623130632d623337386432643134306536', DEFAULT, 2, '[["ce_id", "MDFhMjE5YTgtZDFkYS03MWFmLTk3NjktZjg5N2IwZmI3NGQ3"], ["_watermill_message_uuid", "MDFhMjE5YTgtZDFkYS03MWFmLTk3NjktZjg5N2IwZmI3NGQ3"], ["ce_source", "L3R3aW5ib3gvY3VzdG9tZXI="], ["ce_type", "Y29tLmV4YW1wbGUuY3VzdG9tZXIudXNlci1yZW5hbWVkLnYx"], ["ce_specversion", "MS4w"], ["ce_time", "MjAyNi0xMS0yNlQyMTowMDoyMy44OTE4NFo="], ["ce_subject", "MDFhMjE5YTgtZDFjZC03NDY5LWIxMGMtYjM3OGQyZDE0MGU2"], ["ce_aggregateversion", "Mg=="], ["ce_dataschema", "aHR0cHM6Ly9leGFtcGxlLmNvbS90d2luYm94L2V2ZW50cy91c2VyLXJlbmFtZWQudjEuanNvbg=="], ["content-type", "YXBwbGljYXRpb24vanNvbg=="], ["traceparent", "MDAtYWJlYjgzZjQ1ZWE5ZmVhYzFhOThkZTgxMTg1MzYwMWEtOWViMzI5NjhlOTg3NTM1MC0wMQ=="], ["ce_correlationid", "MDFhMjE5YTgtZDFjZi03YTEwLWI0MTctOGNjNzk3ZmQzMzU5"]]', '\x7b22757365725f6964223a2230316132313961382d643163642d373436392d623130632d623337386432643134306536222c226e616d65223a2243616c6d2031222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32332e38393138345a227d', 'twinbox.e2e-9aad4afb.customer.profile', 'customer.users.v1', 3, 3, '2026-11-26 21:00:23.933+00', NULL, NULL, '', NULL, 'parked', 'parked_behind', 'an earlier event of the key is parked', 1, '2026-11-26 21:00:24.073036+00', '2026-11-26 21:00:24.073946+00', 'waiting', true, true, 0, '', NULL, false, false, NULL),
	(10, 'customer.profile', '01a219a8-d26b-7ceb-920f-e7d837c3b8a2', 'com.example.customer.user-registered.v1', '\x64353635363563312d306364622d346539632d396665662d626162316237343738633831', DEFAULT, 1, '[["ce_id", "MDFhMjE5YTgtZDI2Yi03Y2ViLTkyMGYtZTdkODM3YzNiOGEy"], ["_watermill_message_uuid", "MDFhMjE5YTgtZDI2Yi03Y2ViLTkyMGYtZTdkODM3YzNiOGEy"], ["ce_source", "L2Vsc2V3aGVyZQ=="], ["ce_type", "Y29tLmV4YW1wbGUuY3VzdG9tZXIudXNlci1yZWdpc3RlcmVkLnYx"], ["ce_specversion", "MS4w"], ["ce_time", "MjAyNi0wMS0wMlQwMzowNDowNVo="], ["ce_subject", "ZDU2NTY1YzEtMGNkYi00ZTljLTlmZWYtYmFiMWI3NDc4Yzgx"], ["ce_aggregateversion", "MQ=="], ["content-type", "YXBwbGljYXRpb24vanNvbg=="]]', '\x7b22757365725f6964223a397d', 'twinbox.e2e-9aad4afb.customer.profile', 'customer.users.v1', 4, 6, '2026-11-26 21:00:24.043+00', NULL, NULL, '', NULL, 'permanent', 'schema_violation', 'check event: schema_violation: / required, /user_id type', 1, '2026-11-26 21:00:24.102509+00', '2026-11-26 21:00:24.103143+00', 'waiting', true, true, 0, '', NULL, false, false, NULL),
	(4, 'customer.profile', '01a219a8-d1e8-7a6c-8ede-a40ae0212008', 'com.example.customer.user-registered.v1', '\x30316132313961382d643165382d373963612d383766332d393464383432633930323932', DEFAULT, 1, '[["ce_id", "MDFhMjE5YTgtZDFlOC03YTZjLThlZGUtYTQwYWUwMjEyMDA4"], ["_watermill_message_uuid", "MDFhMjE5YTgtZDFlOC03YTZjLThlZGUtYTQwYWUwMjEyMDA4"], ["ce_source", "L3R3aW5ib3gvY3VzdG9tZXI="], ["ce_type", "Y29tLmV4YW1wbGUuY3VzdG9tZXIudXNlci1yZWdpc3RlcmVkLnYx"], ["ce_specversion", "MS4w"], ["ce_time", "MjAyNi0xMS0yNlQyMTowMDoyMy45MTI2NDFa"], ["ce_subject", "MDFhMjE5YTgtZDFlOC03OWNhLTg3ZjMtOTRkODQyYzkwMjky"], ["ce_aggregateversion", "MQ=="], ["ce_dataschema", "aHR0cHM6Ly9leGFtcGxlLmNvbS90d2luYm94L2V2ZW50cy91c2VyLXJlZ2lzdGVyZWQudjEuanNvbg=="], ["content-type", "YXBwbGljYXRpb24vanNvbg=="], ["traceparent", "MDAtYjNmMjQwODdlYjU4NjZhMWEzMDI0YTgyMzYyMjM4ZmQtZWExYTU4MzYxYmY0YThmZC0wMQ=="], ["ce_correlationid", "MDFhMjE5YTgtZDFlNS03MTAyLWI3NmMtNTBmNTZiNTE5YzNl"]]', '\x7b22757365725f6964223a2230316132313961382d643165382d373963612d383766332d393464383432633930323932222c22656d61696c223a22646f6f6d656432406578616d706c652e6f7267222c226e616d65223a22446f6f6d65642032222c22726567697374657265645f6174223a22323032362d31312d32365432313a30303a32332e3931323634315a227d', 'twinbox.e2e-9aad4afb.customer.profile', 'customer.users.v1', 4, 2, '2026-11-26 21:00:23.951+00', NULL, NULL, '', NULL, 'unknown', 'handler_failed', 'ERROR: doomed (SQLSTATE P0001)', 5, '2026-11-26 21:00:23.972185+00', '2026-11-26 21:00:24.071457+00', 'replayed', true, true, 0, 'applied', '2026-11-26 21:00:24.18038+00', false, false, NULL),
	(7, 'customer.profile', '01a219a8-d1fa-77aa-b924-b2603b117bb8', 'com.example.customer.user-renamed.v1', '\x30316132313961382d643165382d373963612d383766332d393464383432633930323932', DEFAULT, 2, '[["ce_id", "MDFhMjE5YTgtZDFmYS03N2FhLWI5MjQtYjI2MDNiMTE3YmI4"], ["_watermill_message_uuid", "MDFhMjE5YTgtZDFmYS03N2FhLWI5MjQtYjI2MDNiMTE3YmI4"], ["ce_source", "L3R3aW5ib3gvY3VzdG9tZXI="], ["ce_type", "Y29tLmV4YW1wbGUuY3VzdG9tZXIudXNlci1yZW5hbWVkLnYx"], ["ce_specversion", "MS4w"], ["ce_time", "MjAyNi0xMS0yNlQyMTowMDoyMy45MjkwMDha"], ["ce_subject", "MDFhMjE5YTgtZDFlOC03OWNhLTg3ZjMtOTRkODQyYzkwMjky"], ["ce_aggregateversion", "Mg=="], ["ce_dataschema", "aHR0cHM6Ly9leGFtcGxlLmNvbS90d2luYm94L2V2ZW50cy91c2VyLXJlbmFtZWQudjEuanNvbg=="], ["content-type", "YXBwbGljYXRpb24vanNvbg=="], ["traceparent", "MDAtNGQwNThiYmVmZDNmMjllNTNiNTVmYzYyZjBhYWRkODEtOWJiODI2Y2ExNTc2ZjliZi0wMQ=="], ["ce_correlationid", "MDFhMjE5YTgtZDFmOC03NThlLWEzMjAtYjY1MTZmMjE3YmQz"]]', '\x7b22757365725f6964223a2230316132313961382d643165382d373963612d383766332d393464383432633930323932222c226e616d65223a2243616c6d2032222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32332e3932393030385a227d', 'twinbox.e2e-9aad4afb.customer.profile', 'customer.users.v1', 4, 3, '2026-11-26 21:00:23.959+00', NULL, NULL, '', NULL, 'parked', 'parked_behind', 'an earlier event of the key is parked', 1, '2026-11-26 21:00:24.079705+00', '2026-11-26 21:00:24.082023+00', 'replayed', true, true, 0, 'applied', '2026-11-26 21:00:24.184859+00', false, false, NULL),
	(8, 'customer.profile', '01a219a8-d26b-77ba-8d23-6ae5798d2180', 'com.example.customer.user-registered.v1', '\x736f6d656f6e652d30', DEFAULT, 1, '[["ce_id", "MDFhMjE5YTgtZDI2Yi03N2JhLThkMjMtNmFlNTc5OGQyMTgw"], ["_watermill_message_uuid", "MDFhMjE5YTgtZDI2Yi03N2JhLThkMjMtNmFlNTc5OGQyMTgw"], ["ce_source", "L2Vsc2V3aGVyZQ=="], ["ce_type", "Y29tLmV4YW1wbGUuY3VzdG9tZXIudXNlci1yZWdpc3RlcmVkLnYx"], ["ce_specversion", "MS4w"], ["ce_time", "MjAyNi0wMS0wMlQwMzowNDowNVo="], ["ce_subject", "c29tZW9uZS0w"], ["ce_aggregateversion", "MQ=="], ["content-type", "YXBwbGljYXRpb24vanNvbg=="]]', '\x7b22757365725f6964223a377d', 'twinbox.e2e-9aad4afb.customer.profile', 'customer.users.v1', 4, 4, '2026-11-26 21:00:24.043+00', NULL, NULL, '', NULL, 'permanent', 'schema_violation', 'check event: schema_violation: / required, /user_id type', 1, '2026-11-26 21:00:24.083901+00', '2026-11-26 21:00:24.088936+00', 'discarded', true, true, 0, '', '2026-11-26 21:00:24.188258+00', false, false, NULL),
	(9, 'customer.profile', '01a219a8-d26b-7a86-9927-16714b25938e', 'com.example.customer.user-registered.v1', '\x736f6d656f6e652d31', DEFAULT, 1, '[["ce_id", "MDFhMjE5YTgtZDI2Yi03YTg2LTk5MjctMTY3MTRiMjU5Mzhl"], ["_watermill_message_uuid", "MDFhMjE5YTgtZDI2Yi03YTg2LTk5MjctMTY3MTRiMjU5Mzhl"], ["ce_source", "L2Vsc2V3aGVyZQ=="], ["ce_type", "Y29tLmV4YW1wbGUuY3VzdG9tZXIudXNlci1yZWdpc3RlcmVkLnYx"], ["ce_specversion", "MS4w"], ["ce_time", "MjAyNi0wMS0wMlQwMzowNDowNVo="], ["ce_subject", "c29tZW9uZS0x"], ["ce_aggregateversion", "MQ=="], ["content-type", "YXBwbGljYXRpb24vanNvbg=="]]', '\x7b22757365725f6964223a387d', 'twinbox.e2e-9aad4afb.customer.profile', 'customer.users.v1', 4, 5, '2026-11-26 21:00:24.043+00', '[["ce_id", "MDFhMjE5YTgtZDI2Yi03YTg2LTk5MjctMTY3MTRiMjU5Mzhl"], ["_watermill_message_uuid", "MDFhMjE5YTgtZDI2Yi03YTg2LTk5MjctMTY3MTRiMjU5Mzhl"], ["ce_source", "L2Vsc2V3aGVyZQ=="], ["ce_type", "Y29tLmV4YW1wbGUuY3VzdG9tZXIudXNlci1yZWdpc3RlcmVkLnYx"], ["ce_specversion", "MS4w"], ["ce_time", "MjAyNi0wMS0wMlQwMzowNDowNVo="], ["ce_subject", "c29tZW9uZS0x"], ["ce_aggregateversion", "MQ=="], ["content-type", "YXBwbGljYXRpb24vanNvbg=="]]', '\x7b22757365725f6964223a2278227d', 'grace', '2026-11-26 21:00:24.199729+00', 'permanent', 'schema_violation', 'check event: schema_violation: / required, /user_id type', 1, '2026-11-26 21:00:24.099467+00', '2026-11-26 21:00:24.100287+00', 'waiting', true, true, 0, '', NULL, false, false, NULL);

INSERT INTO public.fixture_sent VALUES
	('01a219a8-d15a-735b-a1c8-2c95aa9e72ed'),
	('01a219a8-d177-730d-b845-541b5dcfe877'),
	('01a219a8-d17f-72b2-bd01-3cd135dd3359'),
	('01a219a8-d186-7bc1-b6ba-6e2318c5c76c'),
	('01a219a8-d196-79fe-bca9-20358bff4ce5'),
	('01a219a8-d1a1-78cb-aea8-e9fe3edcfc8c'),
	('01a219a8-d1a9-755e-91bd-76809d3eeda6'),
	('01a219a8-d1b2-73f4-bc59-3384d8845ce7'),
	('01a219a8-d1b6-7d98-917d-9a0608e929a2'),
	('01a219a8-d1bc-7915-9b3d-862dc2c0f288'),
	('01a219a8-d1c4-7df1-9367-5ea42a65830c'),
	('01a219a8-d1cd-7505-825d-877dba8540cf'),
	('01a219a8-d1da-71af-9769-f897b0fb74d7'),
	('01a219a8-d1e8-7a6c-8ede-a40ae0212008'),
	('01a219a8-d1fa-77aa-b924-b2603b117bb8'),
	('01a219a8-d212-71ae-ab90-4397d447c214'),
	('01a219a8-d227-71f7-9b3e-d721a4b124de'),
	('01a219a8-d230-707c-ae23-f61fd881af2e'),
	('01a219a8-d260-7b35-91a2-f98d03138c93'),
	('01a219a8-d277-76e8-8f89-169b9e97a465'),
	('01a219a8-d27f-7930-962c-f134bae0c0d0'),
	('01a219a8-d287-7bea-9ca6-8fcd3d446aac'),
	('01a219a8-d299-7542-8ae7-14c1804ebfe8'),
	('01a219a8-d2a4-76cc-83d5-21bbf6b56c02'),
	('01a219a8-d2a7-7642-a1a1-a3bcec58edb2'),
	('01a219a8-db15-7897-be4b-da5431a2d4c5'),
	('01a219a8-db11-7965-93fc-c906594c6880'),
	('01a219a8-dafa-7996-98c9-27e019479fb9'),
	('01a219a8-dc85-7769-b6e8-346caa2623dd'),
	('01a219a8-dc97-781f-98e6-11b800c87e59'),
	('01a219a8-dc9f-7c9a-9e3b-e412131a256c'),
	('01a219a8-dca7-73d2-92d7-6ee27940e060'),
	('01a219a8-dcaf-763e-a85d-70eb42df10d3'),
	('01a219a8-dcbb-7dc3-83ce-22410a503b73'),
	('01a219a8-dcc3-75a8-9527-62b5b0f48708'),
	('01a219a8-dcc7-77a2-ae7c-e600d2247c26'),
	('01a219a8-dccb-75e5-a5f9-584a1f90ab67'),
	('01a219a8-dcce-7005-bd53-8d1c219f61be'),
	('01a219a8-dccf-7739-a0fe-6d10f2c2d1e4'),
	('01a219a8-dcd3-7530-93f7-354d25b62f17');

INSERT INTO public.idempotency_key VALUES
	('signup', 'ada', '\x0b672b9afc287874fe0efeba6b648c012e0c24019b003878c23b81ed2a88b429', 201, '\x7b22656d61696c223a22616461406578616d706c652e6f7267222c22737461747573223a2270656e64696e675f766572696669636174696f6e222c22757365725f6964223a2230316132313961382d643135612d373161662d626136642d613766363737343834383864222c2276657273696f6e223a317d', '2026-11-26 21:00:23.785565+00', '2026-12-03 21:00:23.785565+00', NULL),
	('signup', 'bob', '\x0d158d61224ea40c4d8c63cc1ad3dceb15de9bfb756f6f2674aaa9328d926209', 201, '\x7b22656d61696c223a22626f62406578616d706c652e6f7267222c22737461747573223a2270656e64696e675f766572696669636174696f6e222c22757365725f6964223a2230316132313961382d643137372d373232622d393163302d653938393134363261383936222c2276657273696f6e223a317d', '2026-11-26 21:00:23.799748+00', '2026-12-03 21:00:23.799748+00', NULL),
	('signup', 'carl', '\x4ab683a2bbf3e6761c2096e518f16a4561b5470a442fcdf39ed6373bda9588bd', 201, '\x7b22656d61696c223a226361726c406578616d706c652e6f7267222c22737461747573223a2270656e64696e675f766572696669636174696f6e222c22757365725f6964223a2230316132313961382d643137662d373166652d616137322d616661646538353638623033222c2276657273696f6e223a317d', '2026-11-26 21:00:23.807627+00', '2026-12-03 21:00:23.807627+00', NULL),
	('signup', 'dora', '\x6b262a32d0e777cab10e89b0f93f42d25afa2803594bb132e5cd98c9257c18f9', 201, '\x7b22656d61696c223a22646f7261406578616d706c652e6f7267222c22737461747573223a2270656e64696e675f766572696669636174696f6e222c22757365725f6964223a2230316132313961382d643138362d376236612d613633372d656239656662313739383732222c2276657273696f6e223a317d', '2026-11-26 21:00:23.817662+00', '2026-12-03 21:00:23.817662+00', NULL),
	('signup', 'eve', '\xcd072e5111126f88a8862a896f2334a8f1ec2de9da2fdaca6689a7c48b174f9f', 201, '\x7b22656d61696c223a22657665406578616d706c652e6f7267222c22737461747573223a2270656e64696e675f766572696669636174696f6e222c22757365725f6964223a2230316132313961382d643139362d373865642d393135622d383663336136643565303862222c2276657273696f6e223a317d', '2026-11-26 21:00:23.832362+00', '2026-12-03 21:00:23.832362+00', NULL),
	('signup', 'frank', '\x10031d3e9c8b8f2b73318aa9e1974d7f75aa9bcd9c96850df714a0eaca44b9fc', 201, '\x7b22656d61696c223a226672616e6b406578616d706c652e6f7267222c22737461747573223a2270656e64696e675f766572696669636174696f6e222c22757365725f6964223a2230316132313961382d643161312d373830612d613438362d373636346631343732663230222c2276657273696f6e223a317d', '2026-11-26 21:00:23.845412+00', '2026-12-03 21:00:23.845412+00', NULL),
	('signup', 'refused', '\x987b3191d01d7c48c446f26f19903cc1d64c4bae08efbe46afd608415e964cd1', 201, '\x7b22656d61696c223a2272656675736564406578616d706c652e6f7267222c22737461747573223a2270656e64696e675f766572696669636174696f6e222c22757365725f6964223a2230316132313961382d643161392d373461312d393665662d306336356332353238376466222c2276657273696f6e223a317d', '2026-11-26 21:00:23.8515+00', '2026-12-03 21:00:23.8515+00', NULL),
	('signup', 'cut', '\x586baf3d71332a5f07bb75c12a0fa70d4c23ae386215681976961da7abc06179', 201, '\x7b22656d61696c223a22637574406578616d706c652e6f7267222c22737461747573223a2270656e64696e675f766572696669636174696f6e222c22757365725f6964223a2230316132313961382d643162322d373333362d623739332d663930623535326639386539222c2276657273696f6e223a317d', '2026-11-26 21:00:23.85881+00', '2026-12-03 21:00:23.85881+00', NULL),
	('signup', 'later1', '\xb293307bbd2238ca08dbd202bab0ed631175326e94c4a8653552f4bf70e8cc31', 201, '\x7b22656d61696c223a226c6174657231406578616d706c652e6f7267222c22737461747573223a2270656e64696e675f766572696669636174696f6e222c22757365725f6964223a2230316132313961382d643162362d376430642d393566392d353836373630653064323136222c2276657273696f6e223a317d', '2026-11-26 21:00:23.863349+00', '2026-12-03 21:00:23.863349+00', NULL),
	('signup', 'later2', '\x7d741a7138e5962372dab509c16b838af4b5798ef47f7e734e040299a3f266b6', 201, '\x7b22656d61696c223a226c6174657232406578616d706c652e6f7267222c22737461747573223a2270656e64696e675f766572696669636174696f6e222c22757365725f6964223a2230316132313961382d643162632d373837652d386631372d393065613535636463323138222c2276657273696f6e223a317d', '2026-11-26 21:00:23.869255+00', '2026-12-03 21:00:23.869255+00', NULL),
	('signup', 'later3', '\x378244f6f973eb74d8201b9370197d0901540cb8fcc8b4973f6c5944c2364632', 201, '\x7b22656d61696c223a226c6174657233406578616d706c652e6f7267222c22737461747573223a2270656e64696e675f766572696669636174696f6e222c22757365725f6964223a2230316132313961382d643163342d376435372d616537332d373636663937373639396436222c2276657273696f6e223a317d', '2026-11-26 21:00:23.877338+00', '2026-12-03 21:00:23.877338+00', NULL),
	('signup', 'doomed1', '\x4ff17d72849cfb2be2feecf8069841a99bbb8e47d0829c062c6a48131a520958', 201, '\x7b22656d61696c223a22646f6f6d656431406578616d706c652e6f7267222c22737461747573223a2270656e64696e675f766572696669636174696f6e222c22757365725f6964223a2230316132313961382d643163642d373436392d623130632d623337386432643134306536222c2276657273696f6e223a317d', '2026-11-26 21:00:23.885731+00', '2026-12-03 21:00:23.885731+00', NULL),
	('signup', 'doomed2', '\xcd269902f903472aca204c520f878f5cd290688d78027d32f78805c2673e4ec0', 201, '\x7b22656d61696c223a22646f6f6d656432406578616d706c652e6f7267222c22737461747573223a2270656e64696e675f766572696669636174696f6e222c22757365725f6964223a2230316132313961382d643165382d373963612d383766332d393464383432633930323932222c2276657273696f6e223a317d', '2026-11-26 21:00:23.915804+00', '2026-12-03 21:00:23.915804+00', NULL),
	('signup', 'late0', '\x860b906481e2579152f0b1893a292a3432de8cf6d1481b2cd4a0e7b1af6e1864', 201, '\x7b22656d61696c223a226c61746530406578616d706c652e6f7267222c22737461747573223a2270656e64696e675f766572696669636174696f6e222c22757365725f6964223a2230316132313961382d646339372d373763332d383436362d333430306463633666653266222c2276657273696f6e223a317d', '2026-11-26 21:00:26.648186+00', '2026-11-26 22:00:26.648186+00', NULL),
	('signup', 'late1', '\xcdd3fd10e5e158e10dbc9a68b1f2a02241627560a752a14238d50bdb908f2ce1', 201, '\x7b22656d61696c223a226c61746531406578616d706c652e6f7267222c22737461747573223a2270656e64696e675f766572696669636174696f6e222c22757365725f6964223a2230316132313961382d646361662d373565352d613133652d666561313566376333396534222c2276657273696f6e223a317d', '2026-11-26 21:00:26.671937+00', '2026-11-26 22:00:26.671937+00', NULL),
	('signup', 'late2', '\x897cb4a12baa3a1978ba101dde0bbfbb729223e7c53e9759e3f7f69795a52f5c', 201, '\x7b22656d61696c223a226c61746532406578616d706c652e6f7267222c22737461747573223a2270656e64696e675f766572696669636174696f6e222c22757365725f6964223a2230316132313961382d646363332d373535302d623664632d303836316439373161376232222c2276657273696f6e223a317d', '2026-11-26 21:00:26.691867+00', '2026-11-26 22:00:26.691867+00', NULL),
	('signup', 'late3', '\xb9ec8bd0dfdc348318797c5b06e8a8a0b12bd4dd9c6e05e4c185eefa81252d00', 201, '\x7b22656d61696c223a226c61746533406578616d706c652e6f7267222c22737461747573223a2270656e64696e675f766572696669636174696f6e222c22757365725f6964223a2230316132313961382d646363622d373561652d626634362d383964373730653363633833222c2276657273696f6e223a317d', '2026-11-26 21:00:26.699684+00', '2026-11-26 22:00:26.699684+00', NULL),
	('signup', 'late4', '\xf09fe3dbfe81c7a64b4cee412b04ee9e1e90b4a30df6b62300da6abe8eab5413', 201, '\x7b22656d61696c223a226c61746534406578616d706c652e6f7267222c22737461747573223a2270656e64696e675f766572696669636174696f6e222c22757365725f6964223a2230316132313961382d646364332d373466622d623566362d636138383735383036623936222c2276657273696f6e223a317d', '2026-11-26 21:00:26.707654+00', '2026-11-26 22:00:26.707654+00', NULL),
	('signup', 'late5', '\x64b83bcd6fb91d2ad2b68a0becdb5fd982a2e68149976bb4535018676ad570ab', 201, '\x7b22656d61696c223a226c61746535406578616d706c652e6f7267222c22737461747573223a2270656e64696e675f766572696669636174696f6e222c22757365725f6964223a2230316132313961382d646364622d373465632d396235302d333537623630363365333563222c2276657273696f6e223a317d', '2026-11-26 21:00:26.715653+00', '2026-11-26 22:00:26.715654+00', NULL),
	('signup', 'late6', '\x730a2e174f0e009dfd23f98535f87b63761393f7c77f5321b2dd45c1b2ed0ee5', 201, '\x7b22656d61696c223a226c61746536406578616d706c652e6f7267222c22737461747573223a2270656e64696e675f766572696669636174696f6e222c22757365725f6964223a2230316132313961382d646365372d373432352d383365342d373437393066623531643063222c2276657273696f6e223a317d', '2026-11-26 21:00:26.727538+00', '2026-11-26 22:00:26.727538+00', NULL),
	('signup', 'late7', '\x85392585be19e2ec08972949bd0cc41b9a8041fcfdb876f2c296a2266a8791e8', 201, '\x7b22656d61696c223a226c61746537406578616d706c652e6f7267222c22737461747573223a2270656e64696e675f766572696669636174696f6e222c22757365725f6964223a2230316132313961382d646366362d373934662d383861382d386438643233653334393265222c2276657273696f6e223a317d', '2026-11-26 21:00:26.742965+00', '2026-11-26 22:00:26.742966+00', NULL),
	('signup', 'late8', '\x3b8baa1aabcaef5ad7c4c1ca9f044d06e1f91c752ebe00abf5a93c341eb6781e', 201, '\x7b22656d61696c223a226c61746538406578616d706c652e6f7267222c22737461747573223a2270656e64696e675f766572696669636174696f6e222c22757365725f6964223a2230316132313961382d646430362d376361642d613762622d356535623863363863393562222c2276657273696f6e223a317d', '2026-11-26 21:00:26.759155+00', '2026-11-26 22:00:26.759155+00', NULL),
	('signup', 'late9', '\xc43d28fbeb669987b5f7329b954810eb57cc3773bf86904fb8de33e4c334a1ef', 201, '\x7b22656d61696c223a226c61746539406578616d706c652e6f7267222c22737461747573223a2270656e64696e675f766572696669636174696f6e222c22757365725f6964223a2230316132313961382d646430662d373464372d383563362d343466373135396331313861222c2276657273696f6e223a317d', '2026-11-26 21:00:26.767585+00', '2026-11-26 22:00:26.767585+00', NULL),
	('signup', 'late10', '\x038bc35a88c5c08672b54255404bce2aeac33061f7290a99124ba7b095745d01', 201, '\x7b22656d61696c223a226c6174653130406578616d706c652e6f7267222c22737461747573223a2270656e64696e675f766572696669636174696f6e222c22757365725f6964223a2230316132313961382d646432392d373838392d386561362d613865383638373138343032222c2276657273696f6e223a317d', '2026-11-26 21:00:26.79382+00', '2026-11-26 22:00:26.79382+00', NULL),
	('signup', 'after', '\x8aef7ac4da0f1b079ea0610bfdcbafa302d7cdb024d2d81b45fc8c66897f87da', 201, '\x7b22656d61696c223a226166746572406578616d706c652e6f7267222c22737461747573223a2270656e64696e675f766572696669636174696f6e222c22757365725f6964223a2230316132313961382d646437622d373363392d393264622d353631663931393736663361222c2276657273696f6e223a317d', '2026-11-26 21:00:26.875987+00', '2026-11-26 22:00:26.875987+00', NULL);

INSERT INTO public.inbox_20261126 VALUES
	('customer.profile', '01a219a8-d196-79fe-bca9-20358bff4ce5', '2026-11-26 21:00:23.83+00', 'com.example.customer.user-registered.v1', '\x70d8dd9a09bd86438279231847ad5942fe36c0852c25acee7983cb57078b5586', '{"group": "twinbox.e2e-9aad4afb.customer.profile", "topic": "customer.users.v1", "offset": 0, "outcome": "applied", "partition": 4, "correlation_id": "01a219a8-d194-718a-9928-90b6822d0c3c", "processing_time": "2026-11-26T21:00:23.902379354Z"}', '2026-11-26 21:00:23.906224+00'),
	('customer.profile', '01a219a8-d177-730d-b845-541b5dcfe877', '2026-11-26 21:00:23.799+00', 'com.example.customer.user-registered.v1', '\x3d5917758892038cc25dea9bcff045f54014b19f3a296826222280d223b31ef7', '{"group": "twinbox.e2e-9aad4afb.customer.profile", "topic": "customer.users.v1", "offset": 0, "outcome": "applied", "partition": 0, "correlation_id": "01a219a8-d176-79fb-a727-a21c8385a582", "processing_time": "2026-11-26T21:00:23.911636477Z"}', '2026-11-26 21:00:23.914203+00'),
	('customer.profile', '01a219a8-d1a1-78cb-aea8-e9fe3edcfc8c', '2026-11-26 21:00:23.841+00', 'com.example.customer.user-registered.v1', '\x53caa89b846fc43b4be4c8186282e1467137c6468c47b62984348823a979b91b', '{"group": "twinbox.e2e-9aad4afb.customer.profile", "topic": "customer.users.v1", "offset": 0, "outcome": "applied", "partition": 1, "correlation_id": "01a219a8-d19f-7c9f-a689-ff26513db744", "processing_time": "2026-11-26T21:00:23.908488242Z"}', '2026-11-26 21:00:23.916832+00'),
	('customer.profile', '01a219a8-d1a9-755e-91bd-76809d3eeda6', '2026-11-26 21:00:23.849+00', 'com.example.customer.user-registered.v1', '\xce7d1700af95364d839fc02ac74d57fa0b81130a6c60894bc30ad0d4c97332d6', '{"group": "twinbox.e2e-9aad4afb.customer.profile", "topic": "customer.users.v1", "offset": 1, "outcome": "applied", "partition": 1, "correlation_id": "01a219a8-d1a9-7083-a039-8375b664cad6", "processing_time": "2026-11-26T21:00:23.908488242Z"}', '2026-11-26 21:00:23.916967+00'),
	('customer.profile', '01a219a8-d17f-72b2-bd01-3cd135dd3359', '2026-11-26 21:00:23.807+00', 'com.example.customer.user-registered.v1', '\xf697c6c9d170471142fef31a87f7779e22f8f508e8f88b6d16ed6bc6172cd85b', '{"group": "twinbox.e2e-9aad4afb.customer.profile", "topic": "customer.users.v1", "offset": 0, "outcome": "applied", "partition": 3, "correlation_id": "01a219a8-d17c-78ef-b44d-a6f420481afa", "processing_time": "2026-11-26T21:00:23.90868698Z"}', '2026-11-26 21:00:23.91773+00'),
	('customer.profile', '01a219a8-d1b6-7d98-917d-9a0608e929a2', '2026-11-26 21:00:23.862+00', 'com.example.customer.user-registered.v1', '\x03dddaebdfc0566267ac1d0e40d8a836443b3cfe341840c1c527f0ac1404a95f', '{"group": "twinbox.e2e-9aad4afb.customer.profile", "topic": "customer.users.v1", "offset": 1, "outcome": "applied", "partition": 3, "correlation_id": "01a219a8-d1b6-792c-9ead-b8bb22dc56fe", "processing_time": "2026-11-26T21:00:23.90868698Z"}', '2026-11-26 21:00:23.918556+00'),
	('customer.profile', '01a219a8-d15a-735b-a1c8-2c95aa9e72ed', '2026-11-26 21:00:23.77+00', 'com.example.customer.user-registered.v1', '\xae46516800314dc9195ea151f992c2965a21fd9a7b00066d983a0f02feb95b18', '{"group": "twinbox.e2e-9aad4afb.customer.profile", "topic": "customer.users.v1", "offset": 0, "outcome": "applied", "partition": 5, "correlation_id": "01a219a8-d0f8-779a-8851-0d6cd7db95c8", "processing_time": "2026-11-26T21:00:23.920754521Z"}', '2026-11-26 21:00:23.922495+00'),
	('customer.profile', '01a219a8-d186-7bc1-b6ba-6e2318c5c76c', '2026-11-26 21:00:23.814+00', 'com.example.customer.user-registered.v1', '\xaae9c934e0c841e3b6d616c1f387d044fa3f2b4182309ba1e32582683259e363', '{"group": "twinbox.e2e-9aad4afb.customer.profile", "topic": "customer.users.v1", "offset": 1, "outcome": "applied", "partition": 5, "correlation_id": "01a219a8-d183-7dae-8370-10e53580eaa5", "processing_time": "2026-11-26T21:00:23.920754521Z"}', '2026-11-26 21:00:23.922573+00'),
	('customer.profile', '01a219a8-d1b2-73f4-bc59-3384d8845ce7', '2026-11-26 21:00:23.858+00', 'com.example.customer.user-registered.v1', '\xaed8d0d2f319bbb50ab96e6439c513aca1c40f7839f7362fb7ea72c37489f113', '{"group": "twinbox.e2e-9aad4afb.customer.profile", "topic": "customer.users.v1", "offset": 0, "outcome": "applied", "partition": 2, "correlation_id": "01a219a8-d1b1-7841-b1e6-f83310983a13", "processing_time": "2026-11-26T21:00:23.920908202Z"}', '2026-11-26 21:00:23.923289+00'),
	('customer.profile', '01a219a8-d1bc-7915-9b3d-862dc2c0f288', '2026-11-26 21:00:23.868+00', 'com.example.customer.user-registered.v1', '\x4ac11bf843063be2ad28a7d29e01b89dd02ef0af79a9de09af7f0ad3bec7a5f4', '{"group": "twinbox.e2e-9aad4afb.customer.profile", "topic": "customer.users.v1", "offset": 1, "outcome": "applied", "partition": 2, "correlation_id": "01a219a8-d1ba-7eaa-9573-80660bd4b5e0", "processing_time": "2026-11-26T21:00:23.920908202Z"}', '2026-11-26 21:00:23.923358+00'),
	('customer.profile', '01a219a8-d1c4-7df1-9367-5ea42a65830c', '2026-11-26 21:00:23.876+00', 'com.example.customer.user-registered.v1', '\xd9c3afedb15fca24d3c4fbbdc749eb652a3239463be7178faa8e56bd57b6bfdf', '{"group": "twinbox.e2e-9aad4afb.customer.profile", "topic": "customer.users.v1", "offset": 1, "outcome": "applied", "partition": 4, "correlation_id": "01a219a8-d1c3-7dc8-bc5e-dbed2819e3a5", "processing_time": "2026-11-26T21:00:23.95211128Z"}', '2026-11-26 21:00:23.954409+00'),
	('customer.profile', '01a219a8-d212-71ae-ab90-4397d447c214', '2026-11-26 21:00:23.954+00', 'com.example.customer.user-renamed.v1', '\x114d26efdfd2c2587e5dce7880bb3ca7c5a32ea41dc4b7f9f696f60bab4fb53c', '{"group": "twinbox.e2e-9aad4afb.customer.profile", "topic": "customer.users.v1", "offset": 2, "outcome": "applied", "partition": 5, "correlation_id": "01a219a8-d210-7dc3-a801-6ef97adc71d3", "processing_time": "2026-11-26T21:00:23.971722962Z"}', '2026-11-26 21:00:23.979579+00'),
	('customer.profile', '01a219a8-d227-71f7-9b3e-d721a4b124de', '2026-11-26 21:00:23.975+00', 'com.example.customer.user-renamed.v1', '\x936b82640195288d1e6aa7e8fd485b13db604922a9321007b07bda43ac03df94', '{"group": "twinbox.e2e-9aad4afb.customer.profile", "topic": "customer.users.v1", "offset": 3, "outcome": "applied", "partition": 5, "correlation_id": "01a219a8-d218-7ace-b760-20add030ce4b", "processing_time": "2026-11-26T21:00:23.987233981Z"}', '2026-11-26 21:00:23.989943+00'),
	('customer.profile', '01a219a8-d230-707c-ae23-f61fd881af2e', '2026-11-26 21:00:23.984+00', 'com.example.customer.user-renamed.v1', '\xad8a2e28adbe8ac89b957f0ea32f17bcb4051e34a78fff79987679d1f3cd6c24', '{"group": "twinbox.e2e-9aad4afb.customer.profile", "topic": "customer.users.v1", "offset": 4, "outcome": "applied", "partition": 5, "correlation_id": "01a219a8-d22e-71c7-a871-55d93fd5eb08", "processing_time": "2026-11-26T21:00:24.018855787Z"}', '2026-11-26 21:00:24.019379+00'),
	('customer.mail', '01a219a8-d230-7142-a918-11a431f2a951', '2026-11-26 21:00:23.984+00', 'com.example.notification.verification-email-sent.v1', '\xb1b07a3fec41513285b3fc64826e4002b7aeec7e72b450b6f3d358a550851417', '{"group": "twinbox.e2e-9aad4afb.customer.mail", "topic": "notification.mails.v1", "offset": 0, "outcome": "applied", "partition": 0, "correlation_id": "01a219a8-d176-79fb-a727-a21c8385a582", "processing_time": "2026-11-26T21:00:23.999148151Z"}', '2026-11-26 21:00:23.999851+00'),
	('customer.mail', '01a219a8-d22f-7259-847e-339324cf308d', '2026-11-26 21:00:23.983+00', 'com.example.notification.verification-email-sent.v1', '\xe6876ea0e0d9aa417ca4daec779b41a7b4d448a42d5d3198a68e2001fa3dfdf8', '{"group": "twinbox.e2e-9aad4afb.customer.mail", "topic": "notification.mails.v1", "offset": 1, "outcome": "applied", "partition": 5, "correlation_id": "01a219a8-d183-7dae-8370-10e53580eaa5", "processing_time": "2026-11-26T21:00:24.016831369Z"}', '2026-11-26 21:00:24.020251+00'),
	('customer.profile', '01a219a8-d26b-762d-ab4d-543fffc36331', '2026-11-26 21:00:24.043+00', 'com.example.customer.user-registered.v1', '\x15319984ca9bc4253c165afac07fc3dd2535d9c719cdbc064106967ecf385ba8', '{"group": "twinbox.e2e-9aad4afb.customer.profile", "topic": "customer.users.v1", "offset": 5, "outcome": "stale", "partition": 5, "processing_time": "2026-11-26T21:00:24.043559011Z"}', '2026-11-26 21:00:24.044174+00'),
	('customer.profile', '01a219a8-d26b-7b89-92b1-6a7e7048bb43', '2026-11-26 21:00:24.043+00', 'com.example.customer.user-registered.v1', '\x795b6904e54f82411df4b0e27a373a55eea3f9d66dac5a9bce1dd92f7b401da5', '{"group": "twinbox.e2e-9aad4afb.customer.profile", "topic": "customer.users.v1", "offset": 1, "outcome": "dead", "partition": 0, "processing_time": "2026-11-26T21:00:24.052318576Z"}', '2026-11-26 21:00:24.052569+00'),
	('customer.profile', '01a219a8-d1cd-7505-825d-877dba8540cf', '2026-11-26 21:00:23.885+00', 'com.example.customer.user-registered.v1', '\x0d8ad17eb0b59728094dc2352485f16c8f1dd339a9266c0101cc4ea89ddf0ea1', '{"group": "twinbox.e2e-9aad4afb.customer.profile", "topic": "customer.users.v1", "offset": 2, "outcome": "dead", "partition": 3, "correlation_id": "01a219a8-d1cc-7c62-9262-d79fe7cf9fd3", "processing_time": "2026-11-26T21:00:24.062684463Z"}', '2026-11-26 21:00:24.062808+00'),
	('customer.profile', '01a219a8-d1da-71af-9769-f897b0fb74d7', '2026-11-26 21:00:23.898+00', 'com.example.customer.user-renamed.v1', '\xc5ff23ab75c705f9d8a0961df191b72d455a62b11c5743830996f684bf37c870', '{"group": "twinbox.e2e-9aad4afb.customer.profile", "topic": "customer.users.v1", "offset": 3, "outcome": "parked", "partition": 3, "correlation_id": "01a219a8-d1cf-7a10-b417-8cc797fd3359", "processing_time": "2026-11-26T21:00:24.070979111Z"}', '2026-11-26 21:00:24.071317+00'),
	('customer.mail', '01a219a8-d22f-71b7-a84a-311600152441', '2026-11-26 21:00:23.983+00', 'com.example.notification.verification-email-sent.v1', '\x49756862e696f0e6ea2b36f1f9970a86b8aaf449548d9985313c37c1323b1e98', '{"group": "twinbox.e2e-9aad4afb.customer.mail", "topic": "notification.mails.v1", "offset": 0, "outcome": "applied", "partition": 5, "correlation_id": "01a219a8-d0f8-779a-8851-0d6cd7db95c8", "processing_time": "2026-11-26T21:00:23.998273058Z"}', '2026-11-26 21:00:24.00121+00'),
	('customer.mail', '01a219a8-d23d-78c6-a143-cf34ef77a5c5', '2026-11-26 21:00:23.997+00', 'com.example.notification.verification-email-sent.v1', '\xd57530a887c81f485c6e4ed4ac4aa3b1372aa4873e1da88ff74574fe2407058a', '{"group": "twinbox.e2e-9aad4afb.customer.mail", "topic": "notification.mails.v1", "offset": 0, "outcome": "applied", "partition": 4, "correlation_id": "01a219a8-d194-718a-9928-90b6822d0c3c", "processing_time": "2026-11-26T21:00:24.010809011Z"}', '2026-11-26 21:00:24.011639+00'),
	('customer.mail', '01a219a8-d241-752d-9ffc-7c4a95ac880d', '2026-11-26 21:00:24.001+00', 'com.example.notification.verification-email-sent.v1', '\x54e2eaee7020cf3fd42f5baa74e1e88f66834419cbcb65950dca46a74955a5b1', '{"group": "twinbox.e2e-9aad4afb.customer.mail", "topic": "notification.mails.v1", "offset": 0, "outcome": "applied", "partition": 1, "correlation_id": "01a219a8-d19f-7c9f-a689-ff26513db744", "processing_time": "2026-11-26T21:00:24.0286724Z"}', '2026-11-26 21:00:24.029357+00'),
	('customer.mail', '01a219a8-d259-7e5d-9729-b0e29fdaedb4', '2026-11-26 21:00:24.025+00', 'com.example.notification.verification-email-sent.v1', '\xdbb31380ed2f3005f4d9822de05db75b014b168d117d4dff8f93dc1a5faf4c1f', '{"group": "twinbox.e2e-9aad4afb.customer.mail", "topic": "notification.mails.v1", "offset": 1, "outcome": "applied", "partition": 4, "correlation_id": "01a219a8-d1e5-7102-b76c-50f56b519c3e", "processing_time": "2026-11-26T21:00:24.034065053Z"}', '2026-11-26 21:00:24.034479+00'),
	('customer.profile', '01a219a8-d26a-73ab-8a14-db6163edf987', '2026-11-26 21:00:24.042+00', 'com.example.customer.user-registered.v1', '\x4649b6d109b9aaa24a4a93d6e130a16651554527673df79d0ad785465f765a22', '{"group": "twinbox.e2e-9aad4afb.customer.profile", "topic": "customer.users.v1", "offset": 2, "outcome": "applied", "partition": 2, "processing_time": "2026-11-26T21:00:24.043228966Z"}', '2026-11-26 21:00:24.048271+00'),
	('customer.profile', '01a219a8-d260-7b35-91a2-f98d03138c93', '2026-11-26 21:00:24.032+00', 'com.example.customer.email-verified.v1', '\xbaec02769220125cb2ff8ffe4b53b73fde2c731de0caad6db3b6b12141348d8a', '{"group": "twinbox.e2e-9aad4afb.customer.profile", "topic": "customer.users.v1", "offset": 6, "outcome": "applied", "partition": 5, "correlation_id": "01a219a8-d25d-711f-a561-2ad528318b5a", "processing_time": "2026-11-26T21:00:24.052395943Z"}', '2026-11-26 21:00:24.054479+00'),
	('customer.profile', '01a219a8-d26a-73ce-acab-4831445d9119', '2026-11-26 21:00:24.042+00', 'com.example.customer.email-verified.v1', '\x777797ed9af085bdf00a8c5f1fcb85a63f21806a7bb514f69b53aa799327cc8e', '{"group": "twinbox.e2e-9aad4afb.customer.profile", "topic": "customer.users.v1", "offset": 3, "outcome": "gap", "partition": 2, "processing_time": "2026-11-26T21:00:24.060416269Z"}', '2026-11-26 21:00:24.061507+00'),
	('customer.profile', '01a219a8-d26a-73d5-8d49-ef39f35fabd5', '2026-11-26 21:00:24.042+00', 'com.example.customer.user-renamed.v1', '\xe3fd7cab2377ec245f423ba7d4d5496ed94d7ef8dcc00ce63c0367da9ced1c37', '{"group": "twinbox.e2e-9aad4afb.customer.profile", "topic": "customer.users.v1", "offset": 4, "outcome": "parked", "partition": 2, "processing_time": "2026-11-26T21:00:24.060416269Z"}', '2026-11-26 21:00:24.061544+00'),
	('customer.mail', '01a219a8-d281-7d4b-9da1-e3c48ce5c581', '2026-11-26 21:00:24.065+00', 'com.example.notification.verification-email-sent.v1', '\x5242f29b49be272fb10b5458eb5f2236415f249a70523e6349322facf480f1ae', '{"group": "twinbox.e2e-9aad4afb.customer.mail", "topic": "notification.mails.v1", "offset": 0, "outcome": "applied", "partition": 2, "correlation_id": "01a219a8-d26a-73ab-8a14-db6163edf987", "processing_time": "2026-11-26T21:00:24.079164045Z"}', '2026-11-26 21:00:24.081537+00'),
	('customer.mail', '01a219a8-d239-77f8-a953-19a7d2323ac1', '2026-11-26 21:00:23.993+00', 'com.example.notification.verification-email-sent.v1', '\xe5fe684a1789d51d4faaedf942fdc1487d6b36693f107831597502f77110b127', '{"group": "twinbox.e2e-9aad4afb.customer.mail", "topic": "notification.mails.v1", "offset": 0, "outcome": "applied", "partition": 3, "correlation_id": "01a219a8-d17c-78ef-b44d-a6f420481afa", "processing_time": "2026-11-26T21:00:24.015450066Z"}', '2026-11-26 21:00:24.0177+00'),
	('customer.mail', '01a219a8-d250-764e-b800-8a685863bfbd', '2026-11-26 21:00:24.016+00', 'com.example.notification.verification-email-sent.v1', '\xa4c97f636a229912520c2fe71e5036c3af2e26916517688a0af46e0cb7becca0', '{"group": "twinbox.e2e-9aad4afb.customer.mail", "topic": "notification.mails.v1", "offset": 1, "outcome": "applied", "partition": 3, "correlation_id": "01a219a8-d1cc-7c62-9262-d79fe7cf9fd3", "processing_time": "2026-11-26T21:00:24.032489889Z"}', '2026-11-26 21:00:24.033533+00'),
	('customer.profile', '01a219a8-d26b-77ba-8d23-6ae5798d2180', '2026-11-26 21:00:24.043+00', 'com.example.customer.user-registered.v1', '\x2820d74979efad7d71d9e6fb6c5d53c7f5c8eeed822a63f19a6b01081d2d6837', '{"group": "twinbox.e2e-9aad4afb.customer.profile", "topic": "customer.users.v1", "offset": 4, "outcome": "dead", "partition": 4, "processing_time": "2026-11-26T21:00:24.083909226Z"}', '2026-11-26 21:00:24.0841+00'),
	('customer.profile', '01a219a8-d26b-7a86-9927-16714b25938e', '2026-11-26 21:00:24.043+00', 'com.example.customer.user-registered.v1', '\xcde457fc91c0717d62fb097af49a03d47aad3f89f22500c0f572c5107f2dd582', '{"group": "twinbox.e2e-9aad4afb.customer.profile", "topic": "customer.users.v1", "offset": 5, "outcome": "dead", "partition": 4, "processing_time": "2026-11-26T21:00:24.099478472Z"}', '2026-11-26 21:00:24.100014+00'),
	('customer.profile', '01a219a8-d26b-7ceb-920f-e7d837c3b8a2', '2026-11-26 21:00:24.043+00', 'com.example.customer.user-registered.v1', '\x9156586f6061333745c7b450fdcd2bcc58b69480bb46365984ba365068c5f3ba', '{"group": "twinbox.e2e-9aad4afb.customer.profile", "topic": "customer.users.v1", "offset": 6, "outcome": "dead", "partition": 4, "processing_time": "2026-11-26T21:00:24.102521249Z"}', '2026-11-26 21:00:24.102831+00'),
	('customer.profile', '01a219a8-d1e8-7a6c-8ede-a40ae0212008', '2026-11-26 21:00:23.912+00', 'com.example.customer.user-registered.v1', '\xdafb6d5633b08d72ecae064a1aef0ccd3388b32c4b3db98cbd1f2e352cd97fdb', '{"group": "twinbox.e2e-9aad4afb.customer.profile", "topic": "customer.users.v1", "offset": 2, "outcome": "applied", "partition": 4, "correlation_id": "01a219a8-d1e5-7102-b76c-50f56b519c3e", "processing_time": "2026-11-26T21:00:24.07000545Z"}', '2026-11-26 21:00:24.070283+00'),
	('customer.profile', '01a219a8-d1fa-77aa-b924-b2603b117bb8', '2026-11-26 21:00:23.93+00', 'com.example.customer.user-renamed.v1', '\x537cd6c58800d4ee1cbbe8986f85136da648a18e0a7718cb2f40a938f20232ac', '{"group": "twinbox.e2e-9aad4afb.customer.profile", "topic": "customer.users.v1", "offset": 3, "outcome": "applied", "partition": 4, "correlation_id": "01a219a8-d1f8-758e-a320-b6516f217bd3", "processing_time": "2026-11-26T21:00:24.077422852Z"}', '2026-11-26 21:00:24.077733+00');

INSERT INTO public.inbox_horizon VALUES
	(true, '2026-11-16 00:00:00+00');

INSERT INTO public.inbox_janitor VALUES
	(true, 'first-edition', 1, '2026-11-26 21:00:23.995529+00', '2026-11-26 22:00:23.995529+00', false);

INSERT INTO public.inbox_pause VALUES
	('customer.mail', 'grace', 'the page is being rebuilt', '2026-11-26 21:00:26.887184+00');

INSERT INTO public.inbox_position VALUES
	('customer.profile', 'customer.users.v1', 1, 2),
	('customer.mail', 'notification.mails.v1', 0, 1),
	('customer.mail', 'notification.mails.v1', 1, 1),
	('customer.mail', 'notification.mails.v1', 2, 1),
	('customer.mail', 'notification.mails.v1', 4, 2),
	('customer.mail', 'notification.mails.v1', 5, 2),
	('customer.mail', 'notification.mails.v1', 3, 2),
	('customer.profile', 'customer.users.v1', 0, 2),
	('customer.profile', 'customer.users.v1', 2, 6),
	('customer.profile', 'customer.users.v1', 4, 7),
	('customer.profile', 'customer.users.v1', 3, 4),
	('customer.profile', 'customer.users.v1', 5, 7);

INSERT INTO public.inbox_watermark VALUES
	('customer.profile', '01a219a8-d196-78ed-915b-86c3a6d5e08b', 1),
	('customer.profile', '01a219a8-d177-722b-91c0-e9891462a896', 1),
	('customer.profile', '01a219a8-d1b2-7336-b793-f90b552f98e9', 1),
	('customer.profile', '01a219a8-d1bc-787e-8f17-90ea55cdc218', 1),
	('customer.profile', '01a219a8-d17f-71fe-aa72-afade8568b03', 1),
	('customer.profile', '01a219a8-d1b6-7d0d-95f9-586760e0d216', 1),
	('customer.profile', '01a219a8-d1a1-780a-a486-7664f1472f20', 1),
	('customer.profile', '01a219a8-d1a9-74a1-96ef-0c65c25287df', 1),
	('customer.profile', '01a219a8-d1c4-7d57-ae73-766f977699d6', 1),
	('customer.profile', '01a219a8-d186-7b6a-a637-eb9efb179872', 3),
	('customer.profile', '01a219a8-d26a-733a-b281-4e61ea891cf2', 1),
	('customer.profile', '01a219a8-d15a-71af-ba6d-a7f67748488d', 3),
	('customer.profile', 'another', 1),
	('customer.profile', '01a219a8-d1e8-79ca-87f3-94d842c90292', 2);

INSERT INTO public.migration_audit VALUES
	(1, 0, true, '2026-11-26 21:00:20.615495'),
	(2, 1, true, '2026-11-26 21:00:20.625767');

INSERT INTO public.migration_customer VALUES
	(1, 0, true, '2026-11-26 21:00:20.890328'),
	(2, 1, true, '2026-11-26 21:00:20.894567'),
	(3, 2, true, '2026-11-26 21:00:20.913048'),
	(4, 3, true, '2026-11-26 21:00:20.918594');

INSERT INTO public.migration_inbox VALUES
	(1, 0, true, '2026-11-26 21:00:20.804146'),
	(2, 1, true, '2026-11-26 21:00:20.811895'),
	(3, 2, true, '2026-11-26 21:00:20.871831'),
	(4, 3, true, '2026-11-26 21:00:20.878382'),
	(5, 4, true, '2026-11-26 21:00:20.879155'),
	(6, 5, true, '2026-11-26 21:00:20.880165'),
	(7, 6, true, '2026-11-26 21:00:20.884872');

INSERT INTO public.migration_outbox VALUES
	(1, 0, true, '2026-11-26 21:00:20.64361'),
	(2, 1, true, '2026-11-26 21:00:20.649094'),
	(3, 2, true, '2026-11-26 21:00:20.724366'),
	(4, 3, true, '2026-11-26 21:00:20.740864'),
	(5, 4, true, '2026-11-26 21:00:20.741939'),
	(6, 5, true, '2026-11-26 21:00:20.742503'),
	(7, 6, true, '2026-11-26 21:00:20.751294'),
	(8, 7, true, '2026-11-26 21:00:20.787203');

INSERT INTO public.operator_action OVERRIDING SYSTEM VALUE VALUES
	(1, '2026-11-26 21:00:24.1809+00', 'grace', 'replay', 'the trigger is gone', 'dead_letter', '4', 'waiting', 'replayed', 1, '{"outcome": "applied"}'),
	(2, '2026-11-26 21:00:24.185064+00', 'grace', 'replay', 'the trigger is gone', 'dead_letter', '7', 'waiting', 'replayed', 1, '{"outcome": "applied"}'),
	(3, '2026-11-26 21:00:24.188565+00', 'grace', 'discard', 'nobody needs it', 'dead_letter', '8', 'waiting', 'discarded', 1, '{}'),
	(4, '2026-11-26 21:00:24.199902+00', 'grace', 'edit', 'mended', 'dead_letter', '9', 'waiting', 'waiting', 1, '{}');

INSERT INTO public.outbox_1 VALUES
	('792', 1, '01a219a8-d15a-735b-a1c8-2c95aa9e72ed', 'com.example.customer.user-registered.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d15a-71af-ba6d-a7f67748488d', 1, 'https://example.com/twinbox/events/user-registered.v1.json', '2026-11-26 21:00:23.770111+00', '{"traceparent": "00-9d25a3f93b91b780c65eb994b80679b9-44b4c2e794f93311-01", "ce_correlationid": "01a219a8-d0f8-779a-8851-0d6cd7db95c8"}', '\x7b22757365725f6964223a2230316132313961382d643135612d373161662d626136642d613766363737343834383864222c22656d61696c223a22616461406578616d706c652e6f7267222c226e616d65223a22416461222c22726567697374657265645f6174223a22323032362d31312d32365432313a30303a32332e3737303131315a227d'),
	('801', 2, '01a219a8-d177-730d-b845-541b5dcfe877', 'com.example.customer.user-registered.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d177-722b-91c0-e9891462a896', 1, 'https://example.com/twinbox/events/user-registered.v1.json', '2026-11-26 21:00:23.799142+00', '{"traceparent": "00-c9f99832888e65f82ecc8bc3a0415910-5e1f87cfdfca0a96-01", "ce_correlationid": "01a219a8-d176-79fb-a727-a21c8385a582"}', '\x7b22757365725f6964223a2230316132313961382d643137372d373232622d393163302d653938393134363261383936222c22656d61696c223a22626f62406578616d706c652e6f7267222c226e616d65223a22426f62222c22726567697374657265645f6174223a22323032362d31312d32365432313a30303a32332e3739393134325a227d'),
	('803', 3, '01a219a8-d17f-72b2-bd01-3cd135dd3359', 'com.example.customer.user-registered.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d17f-71fe-aa72-afade8568b03', 1, 'https://example.com/twinbox/events/user-registered.v1.json', '2026-11-26 21:00:23.807131+00', '{"traceparent": "00-f3f7afd3c80010e5152474cdd891c6a5-4e57468aa7420d82-01", "ce_correlationid": "01a219a8-d17c-78ef-b44d-a6f420481afa"}', '\x7b22757365725f6964223a2230316132313961382d643137662d373166652d616137322d616661646538353638623033222c22656d61696c223a226361726c406578616d706c652e6f7267222c226e616d65223a224361726c222c22726567697374657265645f6174223a22323032362d31312d32365432313a30303a32332e3830373133315a227d'),
	('805', 4, '01a219a8-d186-7bc1-b6ba-6e2318c5c76c', 'com.example.customer.user-registered.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d186-7b6a-a637-eb9efb179872', 1, 'https://example.com/twinbox/events/user-registered.v1.json', '2026-11-26 21:00:23.814748+00', '{"traceparent": "00-344acebdc8aeea565abd2a4692308450-57db05074568221e-01", "ce_correlationid": "01a219a8-d183-7dae-8370-10e53580eaa5"}', '\x7b22757365725f6964223a2230316132313961382d643138362d376236612d613633372d656239656662313739383732222c22656d61696c223a22646f7261406578616d706c652e6f7267222c226e616d65223a22446f7261222c22726567697374657265645f6174223a22323032362d31312d32365432313a30303a32332e3831343734385a227d'),
	('808', 5, '01a219a8-d196-79fe-bca9-20358bff4ce5', 'com.example.customer.user-registered.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d196-78ed-915b-86c3a6d5e08b', 1, 'https://example.com/twinbox/events/user-registered.v1.json', '2026-11-26 21:00:23.830585+00', '{"traceparent": "00-bbb4f3f64cb5e84b705301cc92aa76e6-97f6be02a7f316f1-01", "ce_correlationid": "01a219a8-d194-718a-9928-90b6822d0c3c"}', '\x7b22757365725f6964223a2230316132313961382d643139362d373865642d393135622d383663336136643565303862222c22656d61696c223a22657665406578616d706c652e6f7267222c226e616d65223a22457665222c22726567697374657265645f6174223a22323032362d31312d32365432313a30303a32332e3833303538355a227d'),
	('812', 6, '01a219a8-d1a1-78cb-aea8-e9fe3edcfc8c', 'com.example.customer.user-registered.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d1a1-780a-a486-7664f1472f20', 1, 'https://example.com/twinbox/events/user-registered.v1.json', '2026-11-26 21:00:23.841527+00', '{"traceparent": "00-57f95693fb2e735b488c6b1afdc7c7f1-971eb86dd4c51c42-01", "ce_correlationid": "01a219a8-d19f-7c9f-a689-ff26513db744"}', '\x7b22757365725f6964223a2230316132313961382d643161312d373830612d613438362d373636346631343732663230222c22656d61696c223a226672616e6b406578616d706c652e6f7267222c226e616d65223a224672616e6b222c22726567697374657265645f6174223a22323032362d31312d32365432313a30303a32332e3834313532375a227d'),
	('813', 7, '01a219a8-d1a9-755e-91bd-76809d3eeda6', 'com.example.customer.user-registered.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d1a9-74a1-96ef-0c65c25287df', 1, 'https://example.com/twinbox/events/user-registered.v1.json', '2026-11-26 21:00:23.849303+00', '{"traceparent": "00-f037ae5d2b2f09649d7e39bf807b218f-636b682f8d0968a9-01", "ce_correlationid": "01a219a8-d1a9-7083-a039-8375b664cad6"}', '\x7b22757365725f6964223a2230316132313961382d643161392d373461312d393665662d306336356332353238376466222c22656d61696c223a2272656675736564406578616d706c652e6f7267222c226e616d65223a2252656675736564222c22726567697374657265645f6174223a22323032362d31312d32365432313a30303a32332e3834393330335a227d'),
	('814', 8, '01a219a8-d1b2-73f4-bc59-3384d8845ce7', 'com.example.customer.user-registered.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d1b2-7336-b793-f90b552f98e9', 1, 'https://example.com/twinbox/events/user-registered.v1.json', '2026-11-26 21:00:23.85821+00', '{"traceparent": "00-e7213cd76677e9669a1972d866b3e53a-2d24f3f629d26a06-01", "ce_correlationid": "01a219a8-d1b1-7841-b1e6-f83310983a13"}', '\x7b22757365725f6964223a2230316132313961382d643162322d373333362d623739332d663930623535326639386539222c22656d61696c223a22637574406578616d706c652e6f7267222c226e616d65223a22437574222c22726567697374657265645f6174223a22323032362d31312d32365432313a30303a32332e38353832315a227d'),
	('815', 9, '01a219a8-d1b6-7d98-917d-9a0608e929a2', 'com.example.customer.user-registered.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d1b6-7d0d-95f9-586760e0d216', 1, 'https://example.com/twinbox/events/user-registered.v1.json', '2026-11-26 21:00:23.862855+00', '{"traceparent": "00-df72ef0d9a9a0343de8ec9cd509f39b5-aa7eeb83008884a3-01", "ce_correlationid": "01a219a8-d1b6-792c-9ead-b8bb22dc56fe"}', '\x7b22757365725f6964223a2230316132313961382d643162362d376430642d393566392d353836373630653064323136222c22656d61696c223a226c6174657231406578616d706c652e6f7267222c226e616d65223a224c6174657231222c22726567697374657265645f6174223a22323032362d31312d32365432313a30303a32332e3836323835355a227d'),
	('817', 10, '01a219a8-d1bc-7915-9b3d-862dc2c0f288', 'com.example.customer.user-registered.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d1bc-787e-8f17-90ea55cdc218', 1, 'https://example.com/twinbox/events/user-registered.v1.json', '2026-11-26 21:00:23.868556+00', '{"traceparent": "00-d54587401b6e328d90a79b0dd8aabee7-ce744b6ff9b6ab68-01", "ce_correlationid": "01a219a8-d1ba-7eaa-9573-80660bd4b5e0"}', '\x7b22757365725f6964223a2230316132313961382d643162632d373837652d386631372d393065613535636463323138222c22656d61696c223a226c6174657232406578616d706c652e6f7267222c226e616d65223a224c6174657232222c22726567697374657265645f6174223a22323032362d31312d32365432313a30303a32332e3836383535365a227d'),
	('818', 11, '01a219a8-d1c4-7df1-9367-5ea42a65830c', 'com.example.customer.user-registered.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d1c4-7d57-ae73-766f977699d6', 1, 'https://example.com/twinbox/events/user-registered.v1.json', '2026-11-26 21:00:23.876874+00', '{"traceparent": "00-5b35aff8ff8c08fe4ecb7d78144fef07-691358e9ca72eb91-01", "ce_correlationid": "01a219a8-d1c3-7dc8-bc5e-dbed2819e3a5"}', '\x7b22757365725f6964223a2230316132313961382d643163342d376435372d616537332d373636663937373639396436222c22656d61696c223a226c6174657233406578616d706c652e6f7267222c226e616d65223a224c6174657233222c22726567697374657265645f6174223a22323032362d31312d32365432313a30303a32332e3837363837345a227d'),
	('819', 12, '01a219a8-d1cd-7505-825d-877dba8540cf', 'com.example.customer.user-registered.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d1cd-7469-b10c-b378d2d140e6', 1, 'https://example.com/twinbox/events/user-registered.v1.json', '2026-11-26 21:00:23.885289+00', '{"traceparent": "00-24b54549a3a39adabaa5e07858b7f649-b0945d923bba9cd9-01", "ce_correlationid": "01a219a8-d1cc-7c62-9262-d79fe7cf9fd3"}', '\x7b22757365725f6964223a2230316132313961382d643163642d373436392d623130632d623337386432643134306536222c22656d61696c223a22646f6f6d656431406578616d706c652e6f7267222c226e616d65223a22446f6f6d65642031222c22726567697374657265645f6174223a22323032362d31312d32365432313a30303a32332e3838353238395a227d'),
	('822', 13, '01a219a8-d1da-71af-9769-f897b0fb74d7', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d1cd-7469-b10c-b378d2d140e6', 2, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:23.89184+00', '{"traceparent": "00-abeb83f45ea9feac1a98de811853601a-9eb32968e9875350-01", "ce_correlationid": "01a219a8-d1cf-7a10-b417-8cc797fd3359"}', '\x7b22757365725f6964223a2230316132313961382d643163642d373436392d623130632d623337386432643134306536222c226e616d65223a2243616c6d2031222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32332e38393138345a227d'),
	('842', 14, '01a219a8-d1e8-7a6c-8ede-a40ae0212008', 'com.example.customer.user-registered.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d1e8-79ca-87f3-94d842c90292', 1, 'https://example.com/twinbox/events/user-registered.v1.json', '2026-11-26 21:00:23.912641+00', '{"traceparent": "00-b3f24087eb5866a1a3024a82362238fd-ea1a58361bf4a8fd-01", "ce_correlationid": "01a219a8-d1e5-7102-b76c-50f56b519c3e"}', '\x7b22757365725f6964223a2230316132313961382d643165382d373963612d383766332d393464383432633930323932222c22656d61696c223a22646f6f6d656432406578616d706c652e6f7267222c226e616d65223a22446f6f6d65642032222c22726567697374657265645f6174223a22323032362d31312d32365432313a30303a32332e3931323634315a227d'),
	('1057', 27, '01a219a8-dafe-7eab-896b-ca9c5b9e3067', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d15a-71af-ba6d-a7f67748488d', 4, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:26.238695+00', NULL, '\x7b22757365725f6964223a2230316132313961382d643135612d373161662d626136642d613766363737343834383864222c226e616d65223a226164612034222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32362e3233383639355a227d'),
	('851', 15, '01a219a8-d1fa-77aa-b924-b2603b117bb8', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d1e8-79ca-87f3-94d842c90292', 2, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:23.929008+00', '{"traceparent": "00-4d058bbefd3f29e53b55fc62f0aadd81-9bb826ca1576f9bf-01", "ce_correlationid": "01a219a8-d1f8-758e-a320-b6516f217bd3"}', '\x7b22757365725f6964223a2230316132313961382d643165382d373963612d383766332d393464383432633930323932222c226e616d65223a2243616c6d2032222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32332e3932393030385a227d'),
	('867', 16, '01a219a8-d212-71ae-ab90-4397d447c214', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d15a-71af-ba6d-a7f67748488d', 2, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:23.953568+00', '{"traceparent": "00-dccf2fdc1c18f59a8573f877f08786ef-16063774f63cc883-01", "ce_correlationid": "01a219a8-d210-7dc3-a801-6ef97adc71d3"}', '\x7b22757365725f6964223a2230316132313961382d643135612d373161662d626136642d613766363737343834383864222c226e616d65223a22436f756e74657373222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32332e3935333536385a227d'),
	('880', 17, '01a219a8-d227-71f7-9b3e-d721a4b124de', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d186-7b6a-a637-eb9efb179872', 2, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:23.971896+00', '{"traceparent": "00-d32bd4f0fcc18d4210c315434aadcf93-6bd4378d004c2a25-01", "ce_correlationid": "01a219a8-d218-7ace-b760-20add030ce4b"}', '\x7b22757365725f6964223a2230316132313961382d643138362d376236612d613633372d656239656662313739383732222c226e616d65223a22446f72612044222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32332e3937313839365a227d'),
	('890', 18, '01a219a8-d230-707c-ae23-f61fd881af2e', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d186-7b6a-a637-eb9efb179872', 3, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:23.983061+00', '{"traceparent": "00-72443485022446b6c9e5a9df00deef18-7ee2576bf471d52a-01", "ce_correlationid": "01a219a8-d22e-71c7-a871-55d93fd5eb08"}', '\x7b22757365725f6964223a2230316132313961382d643138362d376236612d613633372d656239656662313739383732222c226e616d65223a22446f72612045222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32332e3938333036315a227d'),
	('942', 19, '01a219a8-d260-7b35-91a2-f98d03138c93', 'com.example.customer.email-verified.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d15a-71af-ba6d-a7f67748488d', 3, 'https://example.com/twinbox/events/email-verified.v1.json', '2026-11-26 21:00:24.032264+00', '{"traceparent": "00-84a3a505e1a3efd993e31d9a3ffb4a94-e6bddf84b1fb0133-01", "ce_correlationid": "01a219a8-d25d-711f-a561-2ad528318b5a"}', '\x7b22757365725f6964223a2230316132313961382d643135612d373161662d626136642d613766363737343834383864222c22656d61696c223a22616461406578616d706c652e6f7267222c2276657269666965645f6174223a22323032362d31312d32365432313a30303a32342e3033323236345a227d'),
	('955', 20, '01a219a8-d277-76e8-8f89-169b9e97a465', 'record', '/', 'dlq.twinbox.e2e-9aad4afb.customer.profile.customer.users.v1', 'someone-2', 1, NULL, '2026-11-26 21:00:24.055453+00', '{"record_wire": "eyJLZXkiOiJjMjl0Wlc5dVpTMHkiLCJIZWFkZXJzIjpbeyJuYW1lIjoiY2VfaWQiLCJ2YWx1ZSI6Ik1ERmhNakU1WVRndFpESTJZaTAzWWpnNUxUa3lZakV0Tm1FM1pUY3dORGhpWWpReiJ9LHsibmFtZSI6Il93YXRlcm1pbGxfbWVzc2FnZV91dWlkIiwidmFsdWUiOiJNREZoTWpFNVlUZ3RaREkyWWkwM1lqZzVMVGt5WWpFdE5tRTNaVGN3TkRoaVlqUXoifSx7Im5hbWUiOiJjZV9zb3VyY2UiLCJ2YWx1ZSI6IkwyVnNjMlYzYUdWeVpRPT0ifSx7Im5hbWUiOiJjZV90eXBlIiwidmFsdWUiOiJZMjl0TG1WNFlXMXdiR1V1WTNWemRHOXRaWEl1ZFhObGNpMXlaV2RwYzNSbGNtVmtMbll4In0seyJuYW1lIjoiY2Vfc3BlY3ZlcnNpb24iLCJ2YWx1ZSI6Ik1TNHcifSx7Im5hbWUiOiJjZV90aW1lIiwidmFsdWUiOiJNakF5Tmkwd01TMHdNbFF3TXpvd05Eb3dOVm89In0seyJuYW1lIjoiY2Vfc3ViamVjdCIsInZhbHVlIjoiYzI5dFpXOXVaUzB5In0seyJuYW1lIjoiY2VfYWdncmVnYXRldmVyc2lvbiIsInZhbHVlIjoiTVE9PSJ9LHsibmFtZSI6ImNvbnRlbnQtdHlwZSIsInZhbHVlIjoiWVhCd2JHbGpZWFJwYjI0dmFuTnZiZz09In0seyJuYW1lIjoiX19kbHEuZXJyb3JzLnRvcGljIiwidmFsdWUiOiJZM1Z6ZEc5dFpYSXVkWE5sY25NdWRqRT0ifSx7Im5hbWUiOiJfX2RscS5lcnJvcnMucGFydGl0aW9uIiwidmFsdWUiOiJNQT09In0seyJuYW1lIjoiX19kbHEuZXJyb3JzLm9mZnNldCIsInZhbHVlIjoiTVE9PSJ9LHsibmFtZSI6Il9fZGxxLmVycm9ycy5ncm91cCIsInZhbHVlIjoiZEhkcGJtSnZlQzVsTW1VdE9XRmhaRFJoWm1JdVkzVnpkRzl0WlhJdWNISnZabWxzWlE9PSJ9LHsibmFtZSI6Il9fZGxxLmVycm9ycy5kZWxpdmVyeS5jb3VudCIsInZhbHVlIjoiTVE9PSJ9LHsibmFtZSI6Il9fZGxxLmVycm9ycy5tZXNzYWdlIiwidmFsdWUiOiJZMmhsWTJzZ1pYWmxiblE2SUdsdWRtRnNhV1JmYW5OdmJqb2dkR2hsSUhCaGVXeHZZV1FnYVhNZ2JtOTBJRzl1WlNCS1UwOU9JR1J2WTNWdFpXNTBJR2x1SUZWVVJpMDQifSx7Im5hbWUiOiJkbHFfZXJyb3JfY2xhc3MiLCJ2YWx1ZSI6ImNHVnliV0Z1Wlc1MCJ9LHsibmFtZSI6ImRscV9lcnJvcl9jb2RlIiwidmFsdWUiOiJhVzUyWVd4cFpGOXFjMjl1In0seyJuYW1lIjoiZGxxX2F0dGVtcHRzIiwidmFsdWUiOiJNUT09In0seyJuYW1lIjoiZGxxX2ZpcnN0X2ZhaWxlZF9hdCIsInZhbHVlIjoiTWpBeU5pMHhNUzB5TmxReU1Ub3dNRG95TkM0d05USXpNRFU1TXpkYSJ9LHsibmFtZSI6ImRscV9yZXBsYXlfY291bnQiLCJ2YWx1ZSI6Ik1BPT0ifSx7Im5hbWUiOiJkbHFfaGFuZGxlciIsInZhbHVlIjoiWTNWemRHOXRaWEl1Y0hKdlptbHNaUT09In1dfQ=="}', '\x67617262616765'),
	('964', 21, '01a219a8-d27f-7930-962c-f134bae0c0d0', 'record', '/', 'dlq.twinbox.e2e-9aad4afb.customer.profile.customer.users.v1', '01a219a8-d1cd-7469-b10c-b378d2d140e6', 1, NULL, '2026-11-26 21:00:24.063602+00', '{"record_wire": "eyJLZXkiOiJNREZoTWpFNVlUZ3RaREZqWkMwM05EWTVMV0l4TUdNdFlqTTNPR1F5WkRFME1HVTIiLCJIZWFkZXJzIjpbeyJuYW1lIjoiY2VfaWQiLCJ2YWx1ZSI6Ik1ERmhNakU1WVRndFpERmpaQzAzTlRBMUxUZ3lOV1F0T0RjM1pHSmhPRFUwTUdObSJ9LHsibmFtZSI6Il93YXRlcm1pbGxfbWVzc2FnZV91dWlkIiwidmFsdWUiOiJNREZoTWpFNVlUZ3RaREZqWkMwM05UQTFMVGd5TldRdE9EYzNaR0poT0RVME1HTm0ifSx7Im5hbWUiOiJjZV9zb3VyY2UiLCJ2YWx1ZSI6IkwzUjNhVzVpYjNndlkzVnpkRzl0WlhJPSJ9LHsibmFtZSI6ImNlX3R5cGUiLCJ2YWx1ZSI6IlkyOXRMbVY0WVcxd2JHVXVZM1Z6ZEc5dFpYSXVkWE5sY2kxeVpXZHBjM1JsY21Wa0xuWXgifSx7Im5hbWUiOiJjZV9zcGVjdmVyc2lvbiIsInZhbHVlIjoiTVM0dyJ9LHsibmFtZSI6ImNlX3RpbWUiLCJ2YWx1ZSI6Ik1qQXlOaTB4TVMweU5sUXlNVG93TURveU15NDRPRFV5T0RsYSJ9LHsibmFtZSI6ImNlX3N1YmplY3QiLCJ2YWx1ZSI6Ik1ERmhNakU1WVRndFpERmpaQzAzTkRZNUxXSXhNR010WWpNM09HUXlaREUwTUdVMiJ9LHsibmFtZSI6ImNlX2FnZ3JlZ2F0ZXZlcnNpb24iLCJ2YWx1ZSI6Ik1RPT0ifSx7Im5hbWUiOiJjZV9kYXRhc2NoZW1hIiwidmFsdWUiOiJhSFIwY0hNNkx5OWxlR0Z0Y0d4bExtTnZiUzkwZDJsdVltOTRMMlYyWlc1MGN5OTFjMlZ5TFhKbFoybHpkR1Z5WldRdWRqRXVhbk52Ymc9PSJ9LHsibmFtZSI6ImNvbnRlbnQtdHlwZSIsInZhbHVlIjoiWVhCd2JHbGpZWFJwYjI0dmFuTnZiZz09In0seyJuYW1lIjoidHJhY2VwYXJlbnQiLCJ2YWx1ZSI6Ik1EQXRNalJpTlRRMU5EbGhNMkV6T1dGa1lXSmhZVFZsTURjNE5UaGlOMlkyTkRrdFlqQTVORFZrT1RJelltSmhPV05rT1Mwd01RPT0ifSx7Im5hbWUiOiJjZV9jb3JyZWxhdGlvbmlkIiwidmFsdWUiOiJNREZoTWpFNVlUZ3RaREZqWXkwM1l6WXlMVGt5TmpJdFpEYzVabVUzWTJZNVptUXoifSx7Im5hbWUiOiJfX2RscS5lcnJvcnMudG9waWMiLCJ2YWx1ZSI6IlkzVnpkRzl0WlhJdWRYTmxjbk11ZGpFPSJ9LHsibmFtZSI6Il9fZGxxLmVycm9ycy5wYXJ0aXRpb24iLCJ2YWx1ZSI6Ik13PT0ifSx7Im5hbWUiOiJfX2RscS5lcnJvcnMub2Zmc2V0IiwidmFsdWUiOiJNZz09In0seyJuYW1lIjoiX19kbHEuZXJyb3JzLmdyb3VwIiwidmFsdWUiOiJkSGRwYm1KdmVDNWxNbVV0T1dGaFpEUmhabUl1WTNWemRHOXRaWEl1Y0hKdlptbHNaUT09In0seyJuYW1lIjoiX19kbHEuZXJyb3JzLmRlbGl2ZXJ5LmNvdW50IiwidmFsdWUiOiJOUT09In0seyJuYW1lIjoiX19kbHEuZXJyb3JzLm1lc3NhZ2UiLCJ2YWx1ZSI6IlJWSlNUMUk2SUdSdmIyMWxaQ0FvVTFGTVUxUkJWRVVnVURBd01ERXAifSx7Im5hbWUiOiJkbHFfZXJyb3JfY2xhc3MiLCJ2YWx1ZSI6ImRXNXJibTkzYmc9PSJ9LHsibmFtZSI6ImRscV9lcnJvcl9jb2RlIiwidmFsdWUiOiJhR0Z1Wkd4bGNsOW1ZV2xzWldRPSJ9LHsibmFtZSI6ImRscV9hdHRlbXB0cyIsInZhbHVlIjoiTlE9PSJ9LHsibmFtZSI6ImRscV9maXJzdF9mYWlsZWRfYXQiLCJ2YWx1ZSI6Ik1qQXlOaTB4TVMweU5sUXlNVG93TURveU15NDVOelUzTkRjME5USmEifSx7Im5hbWUiOiJkbHFfcmVwbGF5X2NvdW50IiwidmFsdWUiOiJNQT09In0seyJuYW1lIjoiZGxxX2hhbmRsZXIiLCJ2YWx1ZSI6IlkzVnpkRzl0WlhJdWNISnZabWxzWlE9PSJ9XX0="}', '\x7b22757365725f6964223a2230316132313961382d643163642d373436392d623130632d623337386432643134306536222c22656d61696c223a22646f6f6d656431406578616d706c652e6f7267222c226e616d65223a22446f6f6d65642031222c22726567697374657265645f6174223a22323032362d31312d32365432313a30303a32332e3838353238395a227d'),
	('1058', 28, '01a219a8-db03-7b4b-9e66-1ca66b9c41a6', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d15a-71af-ba6d-a7f67748488d', 5, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:26.243535+00', NULL, '\x7b22757365725f6964223a2230316132313961382d643135612d373161662d626136642d613766363737343834383864222c226e616d65223a226164612035222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32362e3234333533355a227d'),
	('1060', 29, '01a219a8-db05-7e54-8dbe-b1c522a8b006', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d15a-71af-ba6d-a7f67748488d', 6, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:26.245854+00', NULL, '\x7b22757365725f6964223a2230316132313961382d643135612d373161662d626136642d613766363737343834383864222c226e616d65223a226164612036222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32362e3234353835345a227d'),
	('1061', 30, '01a219a8-db09-774b-a689-9f7881346ad4', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d177-722b-91c0-e9891462a896', 2, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:26.248857+00', NULL, '\x7b22757365725f6964223a2230316132313961382d643137372d373232622d393163302d653938393134363261383936222c226e616d65223a22626f622032222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32362e3234383835375a227d'),
	('1062', 31, '01a219a8-db0b-7476-8764-978bd4c85df3', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d177-722b-91c0-e9891462a896', 3, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:26.251181+00', NULL, '\x7b22757365725f6964223a2230316132313961382d643137372d373232622d393163302d653938393134363261383936222c226e616d65223a22626f622033222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32362e3235313138315a227d'),
	('971', 22, '01a219a8-d287-7bea-9ca6-8fcd3d446aac', 'record', '/', 'dlq.twinbox.e2e-9aad4afb.customer.profile.customer.users.v1', '01a219a8-d1e8-79ca-87f3-94d842c90292', 1, NULL, '2026-11-26 21:00:24.071781+00', '{"record_wire": "eyJLZXkiOiJNREZoTWpFNVlUZ3RaREZsT0MwM09XTmhMVGczWmpNdE9UUmtPRFF5WXprd01qa3kiLCJIZWFkZXJzIjpbeyJuYW1lIjoiY2VfaWQiLCJ2YWx1ZSI6Ik1ERmhNakU1WVRndFpERmxPQzAzWVRaakxUaGxaR1V0WVRRd1lXVXdNakV5TURBNCJ9LHsibmFtZSI6Il93YXRlcm1pbGxfbWVzc2FnZV91dWlkIiwidmFsdWUiOiJNREZoTWpFNVlUZ3RaREZsT0MwM1lUWmpMVGhsWkdVdFlUUXdZV1V3TWpFeU1EQTQifSx7Im5hbWUiOiJjZV9zb3VyY2UiLCJ2YWx1ZSI6IkwzUjNhVzVpYjNndlkzVnpkRzl0WlhJPSJ9LHsibmFtZSI6ImNlX3R5cGUiLCJ2YWx1ZSI6IlkyOXRMbVY0WVcxd2JHVXVZM1Z6ZEc5dFpYSXVkWE5sY2kxeVpXZHBjM1JsY21Wa0xuWXgifSx7Im5hbWUiOiJjZV9zcGVjdmVyc2lvbiIsInZhbHVlIjoiTVM0dyJ9LHsibmFtZSI6ImNlX3RpbWUiLCJ2YWx1ZSI6Ik1qQXlOaTB4TVMweU5sUXlNVG93TURveU15NDVNVEkyTkRGYSJ9LHsibmFtZSI6ImNlX3N1YmplY3QiLCJ2YWx1ZSI6Ik1ERmhNakU1WVRndFpERmxPQzAzT1dOaExUZzNaak10T1RSa09EUXlZemt3TWpreSJ9LHsibmFtZSI6ImNlX2FnZ3JlZ2F0ZXZlcnNpb24iLCJ2YWx1ZSI6Ik1RPT0ifSx7Im5hbWUiOiJjZV9kYXRhc2NoZW1hIiwidmFsdWUiOiJhSFIwY0hNNkx5OWxlR0Z0Y0d4bExtTnZiUzkwZDJsdVltOTRMMlYyWlc1MGN5OTFjMlZ5TFhKbFoybHpkR1Z5WldRdWRqRXVhbk52Ymc9PSJ9LHsibmFtZSI6ImNvbnRlbnQtdHlwZSIsInZhbHVlIjoiWVhCd2JHbGpZWFJwYjI0dmFuTnZiZz09In0seyJuYW1lIjoidHJhY2VwYXJlbnQiLCJ2YWx1ZSI6Ik1EQXRZak5tTWpRd09EZGxZalU0TmpaaE1XRXpNREkwWVRneU16WXlNak00Wm1RdFpXRXhZVFU0TXpZeFltWTBZVGhtWkMwd01RPT0ifSx7Im5hbWUiOiJjZV9jb3JyZWxhdGlvbmlkIiwidmFsdWUiOiJNREZoTWpFNVlUZ3RaREZsTlMwM01UQXlMV0kzTm1NdE5UQm1OVFppTlRFNVl6TmwifSx7Im5hbWUiOiJfX2RscS5lcnJvcnMudG9waWMiLCJ2YWx1ZSI6IlkzVnpkRzl0WlhJdWRYTmxjbk11ZGpFPSJ9LHsibmFtZSI6Il9fZGxxLmVycm9ycy5wYXJ0aXRpb24iLCJ2YWx1ZSI6Ik5BPT0ifSx7Im5hbWUiOiJfX2RscS5lcnJvcnMub2Zmc2V0IiwidmFsdWUiOiJNZz09In0seyJuYW1lIjoiX19kbHEuZXJyb3JzLmdyb3VwIiwidmFsdWUiOiJkSGRwYm1KdmVDNWxNbVV0T1dGaFpEUmhabUl1WTNWemRHOXRaWEl1Y0hKdlptbHNaUT09In0seyJuYW1lIjoiX19kbHEuZXJyb3JzLmRlbGl2ZXJ5LmNvdW50IiwidmFsdWUiOiJOUT09In0seyJuYW1lIjoiX19kbHEuZXJyb3JzLm1lc3NhZ2UiLCJ2YWx1ZSI6IlJWSlNUMUk2SUdSdmIyMWxaQ0FvVTFGTVUxUkJWRVVnVURBd01ERXAifSx7Im5hbWUiOiJkbHFfZXJyb3JfY2xhc3MiLCJ2YWx1ZSI6ImRXNXJibTkzYmc9PSJ9LHsibmFtZSI6ImRscV9lcnJvcl9jb2RlIiwidmFsdWUiOiJhR0Z1Wkd4bGNsOW1ZV2xzWldRPSJ9LHsibmFtZSI6ImRscV9hdHRlbXB0cyIsInZhbHVlIjoiTlE9PSJ9LHsibmFtZSI6ImRscV9maXJzdF9mYWlsZWRfYXQiLCJ2YWx1ZSI6Ik1qQXlOaTB4TVMweU5sUXlNVG93TURveU15NDVOekl4T0RVd016WmEifSx7Im5hbWUiOiJkbHFfcmVwbGF5X2NvdW50IiwidmFsdWUiOiJNQT09In0seyJuYW1lIjoiZGxxX2hhbmRsZXIiLCJ2YWx1ZSI6IlkzVnpkRzl0WlhJdWNISnZabWxzWlE9PSJ9XX0="}', '\x7b22757365725f6964223a2230316132313961382d643165382d373963612d383766332d393464383432633930323932222c22656d61696c223a22646f6f6d656432406578616d706c652e6f7267222c226e616d65223a22446f6f6d65642032222c22726567697374657265645f6174223a22323032362d31312d32365432313a30303a32332e3931323634315a227d'),
	('980', 23, '01a219a8-d299-7542-8ae7-14c1804ebfe8', 'record', '/', 'dlq.twinbox.e2e-9aad4afb.customer.profile.customer.users.v1', 'someone-0', 1, NULL, '2026-11-26 21:00:24.089345+00', '{"record_wire": "eyJLZXkiOiJjMjl0Wlc5dVpTMHciLCJIZWFkZXJzIjpbeyJuYW1lIjoiY2VfaWQiLCJ2YWx1ZSI6Ik1ERmhNakU1WVRndFpESTJZaTAzTjJKaExUaGtNak10Tm1GbE5UYzVPR1F5TVRndyJ9LHsibmFtZSI6Il93YXRlcm1pbGxfbWVzc2FnZV91dWlkIiwidmFsdWUiOiJNREZoTWpFNVlUZ3RaREkyWWkwM04ySmhMVGhrTWpNdE5tRmxOVGM1T0dReU1UZ3cifSx7Im5hbWUiOiJjZV9zb3VyY2UiLCJ2YWx1ZSI6IkwyVnNjMlYzYUdWeVpRPT0ifSx7Im5hbWUiOiJjZV90eXBlIiwidmFsdWUiOiJZMjl0TG1WNFlXMXdiR1V1WTNWemRHOXRaWEl1ZFhObGNpMXlaV2RwYzNSbGNtVmtMbll4In0seyJuYW1lIjoiY2Vfc3BlY3ZlcnNpb24iLCJ2YWx1ZSI6Ik1TNHcifSx7Im5hbWUiOiJjZV90aW1lIiwidmFsdWUiOiJNakF5Tmkwd01TMHdNbFF3TXpvd05Eb3dOVm89In0seyJuYW1lIjoiY2Vfc3ViamVjdCIsInZhbHVlIjoiYzI5dFpXOXVaUzB3In0seyJuYW1lIjoiY2VfYWdncmVnYXRldmVyc2lvbiIsInZhbHVlIjoiTVE9PSJ9LHsibmFtZSI6ImNvbnRlbnQtdHlwZSIsInZhbHVlIjoiWVhCd2JHbGpZWFJwYjI0dmFuTnZiZz09In0seyJuYW1lIjoiX19kbHEuZXJyb3JzLnRvcGljIiwidmFsdWUiOiJZM1Z6ZEc5dFpYSXVkWE5sY25NdWRqRT0ifSx7Im5hbWUiOiJfX2RscS5lcnJvcnMucGFydGl0aW9uIiwidmFsdWUiOiJOQT09In0seyJuYW1lIjoiX19kbHEuZXJyb3JzLm9mZnNldCIsInZhbHVlIjoiTkE9PSJ9LHsibmFtZSI6Il9fZGxxLmVycm9ycy5ncm91cCIsInZhbHVlIjoiZEhkcGJtSnZlQzVsTW1VdE9XRmhaRFJoWm1JdVkzVnpkRzl0WlhJdWNISnZabWxzWlE9PSJ9LHsibmFtZSI6Il9fZGxxLmVycm9ycy5kZWxpdmVyeS5jb3VudCIsInZhbHVlIjoiTVE9PSJ9LHsibmFtZSI6Il9fZGxxLmVycm9ycy5tZXNzYWdlIiwidmFsdWUiOiJZMmhsWTJzZ1pYWmxiblE2SUhOamFHVnRZVjkyYVc5c1lYUnBiMjQ2SUM4Z2NtVnhkV2x5WldRc0lDOTFjMlZ5WDJsa0lIUjVjR1U9In0seyJuYW1lIjoiZGxxX2Vycm9yX2NsYXNzIiwidmFsdWUiOiJjR1Z5YldGdVpXNTAifSx7Im5hbWUiOiJkbHFfZXJyb3JfY29kZSIsInZhbHVlIjoiYzJOb1pXMWhYM1pwYjJ4aGRHbHZiZz09In0seyJuYW1lIjoiZGxxX2F0dGVtcHRzIiwidmFsdWUiOiJNUT09In0seyJuYW1lIjoiZGxxX2ZpcnN0X2ZhaWxlZF9hdCIsInZhbHVlIjoiTWpBeU5pMHhNUzB5TmxReU1Ub3dNRG95TkM0d09ETTVNREV5TWpSYSJ9LHsibmFtZSI6ImRscV9yZXBsYXlfY291bnQiLCJ2YWx1ZSI6Ik1BPT0ifSx7Im5hbWUiOiJkbHFfaGFuZGxlciIsInZhbHVlIjoiWTNWemRHOXRaWEl1Y0hKdlptbHNaUT09In1dfQ=="}', '\x7b22757365725f6964223a377d'),
	('981', 24, '01a219a8-d2a4-76cc-83d5-21bbf6b56c02', 'record', '/', 'dlq.twinbox.e2e-9aad4afb.customer.profile.customer.users.v1', 'someone-1', 1, NULL, '2026-11-26 21:00:24.100445+00', '{"record_wire": "eyJLZXkiOiJjMjl0Wlc5dVpTMHgiLCJIZWFkZXJzIjpbeyJuYW1lIjoiY2VfaWQiLCJ2YWx1ZSI6Ik1ERmhNakU1WVRndFpESTJZaTAzWVRnMkxUazVNamN0TVRZM01UUmlNalU1TXpobCJ9LHsibmFtZSI6Il93YXRlcm1pbGxfbWVzc2FnZV91dWlkIiwidmFsdWUiOiJNREZoTWpFNVlUZ3RaREkyWWkwM1lUZzJMVGs1TWpjdE1UWTNNVFJpTWpVNU16aGwifSx7Im5hbWUiOiJjZV9zb3VyY2UiLCJ2YWx1ZSI6IkwyVnNjMlYzYUdWeVpRPT0ifSx7Im5hbWUiOiJjZV90eXBlIiwidmFsdWUiOiJZMjl0TG1WNFlXMXdiR1V1WTNWemRHOXRaWEl1ZFhObGNpMXlaV2RwYzNSbGNtVmtMbll4In0seyJuYW1lIjoiY2Vfc3BlY3ZlcnNpb24iLCJ2YWx1ZSI6Ik1TNHcifSx7Im5hbWUiOiJjZV90aW1lIiwidmFsdWUiOiJNakF5Tmkwd01TMHdNbFF3TXpvd05Eb3dOVm89In0seyJuYW1lIjoiY2Vfc3ViamVjdCIsInZhbHVlIjoiYzI5dFpXOXVaUzB4In0seyJuYW1lIjoiY2VfYWdncmVnYXRldmVyc2lvbiIsInZhbHVlIjoiTVE9PSJ9LHsibmFtZSI6ImNvbnRlbnQtdHlwZSIsInZhbHVlIjoiWVhCd2JHbGpZWFJwYjI0dmFuTnZiZz09In0seyJuYW1lIjoiX19kbHEuZXJyb3JzLnRvcGljIiwidmFsdWUiOiJZM1Z6ZEc5dFpYSXVkWE5sY25NdWRqRT0ifSx7Im5hbWUiOiJfX2RscS5lcnJvcnMucGFydGl0aW9uIiwidmFsdWUiOiJOQT09In0seyJuYW1lIjoiX19kbHEuZXJyb3JzLm9mZnNldCIsInZhbHVlIjoiTlE9PSJ9LHsibmFtZSI6Il9fZGxxLmVycm9ycy5ncm91cCIsInZhbHVlIjoiZEhkcGJtSnZlQzVsTW1VdE9XRmhaRFJoWm1JdVkzVnpkRzl0WlhJdWNISnZabWxzWlE9PSJ9LHsibmFtZSI6Il9fZGxxLmVycm9ycy5kZWxpdmVyeS5jb3VudCIsInZhbHVlIjoiTVE9PSJ9LHsibmFtZSI6Il9fZGxxLmVycm9ycy5tZXNzYWdlIiwidmFsdWUiOiJZMmhsWTJzZ1pYWmxiblE2SUhOamFHVnRZVjkyYVc5c1lYUnBiMjQ2SUM4Z2NtVnhkV2x5WldRc0lDOTFjMlZ5WDJsa0lIUjVjR1U9In0seyJuYW1lIjoiZGxxX2Vycm9yX2NsYXNzIiwidmFsdWUiOiJjR1Z5YldGdVpXNTAifSx7Im5hbWUiOiJkbHFfZXJyb3JfY29kZSIsInZhbHVlIjoiYzJOb1pXMWhYM1pwYjJ4aGRHbHZiZz09In0seyJuYW1lIjoiZGxxX2F0dGVtcHRzIiwidmFsdWUiOiJNUT09In0seyJuYW1lIjoiZGxxX2ZpcnN0X2ZhaWxlZF9hdCIsInZhbHVlIjoiTWpBeU5pMHhNUzB5TmxReU1Ub3dNRG95TkM0d09UazBOamMzTnpaYSJ9LHsibmFtZSI6ImRscV9yZXBsYXlfY291bnQiLCJ2YWx1ZSI6Ik1BPT0ifSx7Im5hbWUiOiJkbHFfaGFuZGxlciIsInZhbHVlIjoiWTNWemRHOXRaWEl1Y0hKdlptbHNaUT09In1dfQ=="}', '\x7b22757365725f6964223a387d'),
	('983', 25, '01a219a8-d2a7-7642-a1a1-a3bcec58edb2', 'record', '/', 'dlq.twinbox.e2e-9aad4afb.customer.profile.customer.users.v1', 'd56565c1-0cdb-4e9c-9fef-bab1b7478c81', 1, NULL, '2026-11-26 21:00:24.10341+00', '{"record_wire": "eyJLZXkiOiJaRFUyTlRZMVl6RXRNR05rWWkwMFpUbGpMVGxtWldZdFltRmlNV0kzTkRjNFl6Z3giLCJIZWFkZXJzIjpbeyJuYW1lIjoiY2VfaWQiLCJ2YWx1ZSI6Ik1ERmhNakU1WVRndFpESTJZaTAzWTJWaUxUa3lNR1l0WlRka09ETTNZek5pT0dFeSJ9LHsibmFtZSI6Il93YXRlcm1pbGxfbWVzc2FnZV91dWlkIiwidmFsdWUiOiJNREZoTWpFNVlUZ3RaREkyWWkwM1kyVmlMVGt5TUdZdFpUZGtPRE0zWXpOaU9HRXkifSx7Im5hbWUiOiJjZV9zb3VyY2UiLCJ2YWx1ZSI6IkwyVnNjMlYzYUdWeVpRPT0ifSx7Im5hbWUiOiJjZV90eXBlIiwidmFsdWUiOiJZMjl0TG1WNFlXMXdiR1V1WTNWemRHOXRaWEl1ZFhObGNpMXlaV2RwYzNSbGNtVmtMbll4In0seyJuYW1lIjoiY2Vfc3BlY3ZlcnNpb24iLCJ2YWx1ZSI6Ik1TNHcifSx7Im5hbWUiOiJjZV90aW1lIiwidmFsdWUiOiJNakF5Tmkwd01TMHdNbFF3TXpvd05Eb3dOVm89In0seyJuYW1lIjoiY2Vfc3ViamVjdCIsInZhbHVlIjoiWkRVMk5UWTFZekV0TUdOa1lpMDBaVGxqTFRsbVpXWXRZbUZpTVdJM05EYzRZemd4In0seyJuYW1lIjoiY2VfYWdncmVnYXRldmVyc2lvbiIsInZhbHVlIjoiTVE9PSJ9LHsibmFtZSI6ImNvbnRlbnQtdHlwZSIsInZhbHVlIjoiWVhCd2JHbGpZWFJwYjI0dmFuTnZiZz09In0seyJuYW1lIjoiX19kbHEuZXJyb3JzLnRvcGljIiwidmFsdWUiOiJZM1Z6ZEc5dFpYSXVkWE5sY25NdWRqRT0ifSx7Im5hbWUiOiJfX2RscS5lcnJvcnMucGFydGl0aW9uIiwidmFsdWUiOiJOQT09In0seyJuYW1lIjoiX19kbHEuZXJyb3JzLm9mZnNldCIsInZhbHVlIjoiTmc9PSJ9LHsibmFtZSI6Il9fZGxxLmVycm9ycy5ncm91cCIsInZhbHVlIjoiZEhkcGJtSnZlQzVsTW1VdE9XRmhaRFJoWm1JdVkzVnpkRzl0WlhJdWNISnZabWxzWlE9PSJ9LHsibmFtZSI6Il9fZGxxLmVycm9ycy5kZWxpdmVyeS5jb3VudCIsInZhbHVlIjoiTVE9PSJ9LHsibmFtZSI6Il9fZGxxLmVycm9ycy5tZXNzYWdlIiwidmFsdWUiOiJZMmhsWTJzZ1pYWmxiblE2SUhOamFHVnRZVjkyYVc5c1lYUnBiMjQ2SUM4Z2NtVnhkV2x5WldRc0lDOTFjMlZ5WDJsa0lIUjVjR1U9In0seyJuYW1lIjoiZGxxX2Vycm9yX2NsYXNzIiwidmFsdWUiOiJjR1Z5YldGdVpXNTAifSx7Im5hbWUiOiJkbHFfZXJyb3JfY29kZSIsInZhbHVlIjoiYzJOb1pXMWhYM1pwYjJ4aGRHbHZiZz09In0seyJuYW1lIjoiZGxxX2F0dGVtcHRzIiwidmFsdWUiOiJNUT09In0seyJuYW1lIjoiZGxxX2ZpcnN0X2ZhaWxlZF9hdCIsInZhbHVlIjoiTWpBeU5pMHhNUzB5TmxReU1Ub3dNRG95TkM0eE1ESTFNRGt5TnpGYSJ9LHsibmFtZSI6ImRscV9yZXBsYXlfY291bnQiLCJ2YWx1ZSI6Ik1BPT0ifSx7Im5hbWUiOiJkbHFfaGFuZGxlciIsInZhbHVlIjoiWTNWemRHOXRaWEl1Y0hKdlptbHNaUT09In1dfQ=="}', '\x7b22757365725f6964223a397d'),
	('1056', 26, '01a219a8-dafa-7996-98c9-27e019479fb9', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d196-78ed-915b-86c3a6d5e08b', 2, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:26.234595+00', NULL, '\x7b22757365725f6964223a2230316132313961382d643139362d373865642d393135622d383663336136643565303862222c226e616d65223a226576652032222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32362e3233343539355a227d'),
	('1063', 32, '01a219a8-db0f-7322-b5ef-fbc7d6eb38f2', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d17f-71fe-aa72-afade8568b03', 2, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:26.255089+00', NULL, '\x7b22757365725f6964223a2230316132313961382d643137662d373166652d616137322d616661646538353638623033222c226e616d65223a226361726c2032222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32362e3235353038395a227d'),
	('1064', 33, '01a219a8-db11-7965-93fc-c906594c6880', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d17f-71fe-aa72-afade8568b03', 3, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:26.257538+00', NULL, '\x7b22757365725f6964223a2230316132313961382d643137662d373166652d616137322d616661646538353638623033222c226e616d65223a226361726c2033222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32362e3235373533385a227d'),
	('1066', 34, '01a219a8-db15-7897-be4b-da5431a2d4c5', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d186-7b6a-a637-eb9efb179872', 4, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:26.261486+00', NULL, '\x7b22757365725f6964223a2230316132313961382d643138362d376236612d613633372d656239656662313739383732222c226e616d65223a22646f72612034222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32362e3236313438365a227d'),
	('1073', 35, '01a219a8-dc69-7133-886b-353ce7af4c0f', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d15a-71af-ba6d-a7f67748488d', 7, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:26.600895+00', NULL, '\x7b22757365725f6964223a2230316132313961382d643135612d373161662d626136642d613766363737343834383864222c226e616d65223a226164612037222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32362e3630303839355a227d'),
	('1078', 37, '01a219a8-dc85-7769-b6e8-346caa2623dd', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '64aa378e-5222-45a8-aeb2-94591e2f8339', 1, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-01-02 03:04:05+00', NULL, '\x7b22757365725f6964223a2236346161333738652d353232322d343561382d616562322d393435393165326638333339222c226e616d65223a22476976656e222c2272656e616d65645f6174223a22323032362d30312d30325430333a30343a30355a227d'),
	('1082', 38, '01a219a8-dc97-781f-98e6-11b800c87e59', 'com.example.customer.user-registered.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-dc97-77c3-8466-3400dcc6fe2f', 1, 'https://example.com/twinbox/events/user-registered.v1.json', '2026-11-26 21:00:26.647509+00', NULL, '\x7b22757365725f6964223a2230316132313961382d646339372d373763332d383436362d333430306463633666653266222c22656d61696c223a226c61746530406578616d706c652e6f7267222c226e616d65223a226c61746530222c22726567697374657265645f6174223a22323032362d31312d32365432313a30303a32362e3634373530395a227d'),
	('1083', 39, '01a219a8-dc9f-7c9a-9e3b-e412131a256c', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d186-7b6a-a637-eb9efb179872', 5, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:26.655688+00', NULL, '\x7b22757365725f6964223a2230316132313961382d643138362d376236612d613633372d656239656662313739383732222c226e616d65223a22646f72612035222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32362e3635353638385a227d'),
	('1084', 40, '01a219a8-dca7-73d2-92d7-6ee27940e060', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-dc97-77c3-8466-3400dcc6fe2f', 2, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:26.663127+00', NULL, '\x7b22757365725f6964223a2230316132313961382d646339372d373763332d383436362d333430306463633666653266222c226e616d65223a226c617465302032222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32362e3636333132375a227d'),
	('1085', 41, '01a219a8-dcaf-763e-a85d-70eb42df10d3', 'com.example.customer.user-registered.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-dcaf-75e5-a13e-fea15f7c39e4', 1, 'https://example.com/twinbox/events/user-registered.v1.json', '2026-11-26 21:00:26.671386+00', NULL, '\x7b22757365725f6964223a2230316132313961382d646361662d373565352d613133652d666561313566376333396534222c22656d61696c223a226c61746531406578616d706c652e6f7267222c226e616d65223a226c61746531222c22726567697374657265645f6174223a22323032362d31312d32365432313a30303a32362e3637313338365a227d'),
	('1086', 42, '01a219a8-dcb4-7ba4-9643-27fea2dca003', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d15a-71af-ba6d-a7f67748488d', 8, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:26.676616+00', NULL, '\x7b22757365725f6964223a2230316132313961382d643135612d373161662d626136642d613766363737343834383864222c226e616d65223a226164612038222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32362e3637363631365a227d'),
	('1087', 43, '01a219a8-dcbb-7dc3-83ce-22410a503b73', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-dcaf-75e5-a13e-fea15f7c39e4', 2, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:26.683717+00', NULL, '\x7b22757365725f6964223a2230316132313961382d646361662d373565352d613133652d666561313566376333396534222c226e616d65223a226c617465312032222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32362e3638333731375a227d'),
	('1088', 44, '01a219a8-dcc3-75a8-9527-62b5b0f48708', 'com.example.customer.user-registered.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-dcc3-7550-b6dc-0861d971a7b2', 1, 'https://example.com/twinbox/events/user-registered.v1.json', '2026-11-26 21:00:26.691348+00', NULL, '\x7b22757365725f6964223a2230316132313961382d646363332d373535302d623664632d303836316439373161376232222c22656d61696c223a226c61746532406578616d706c652e6f7267222c226e616d65223a226c61746532222c22726567697374657265645f6174223a22323032362d31312d32365432313a30303a32362e3639313334385a227d'),
	('1089', 45, '01a219a8-dcc6-7303-8c45-cd2f3a8ce4f1', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d177-722b-91c0-e9891462a896', 4, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:26.694098+00', NULL, '\x7b22757365725f6964223a2230316132313961382d643137372d373232622d393163302d653938393134363261383936222c226e616d65223a22626f622034222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32362e3639343039385a227d'),
	('1090', 46, '01a219a8-dcc7-77a2-ae7c-e600d2247c26', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-dcc3-7550-b6dc-0861d971a7b2', 2, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:26.695428+00', NULL, '\x7b22757365725f6964223a2230316132313961382d646363332d373535302d623664632d303836316439373161376232222c226e616d65223a226c617465322032222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32362e3639353432385a227d'),
	('1091', 47, '01a219a8-dccb-75e5-a5f9-584a1f90ab67', 'com.example.customer.user-registered.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-dccb-75ae-bf46-89d770e3cc83', 1, 'https://example.com/twinbox/events/user-registered.v1.json', '2026-11-26 21:00:26.699372+00', NULL, '\x7b22757365725f6964223a2230316132313961382d646363622d373561652d626634362d383964373730653363633833222c22656d61696c223a226c61746533406578616d706c652e6f7267222c226e616d65223a226c61746533222c22726567697374657265645f6174223a22323032362d31312d32365432313a30303a32362e3639393337325a227d'),
	('1092', 48, '01a219a8-dcce-7005-bd53-8d1c219f61be', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d186-7b6a-a637-eb9efb179872', 6, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:26.701926+00', NULL, '\x7b22757365725f6964223a2230316132313961382d643138362d376236612d613633372d656239656662313739383732222c226e616d65223a22646f72612036222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32362e3730313932365a227d'),
	('1093', 49, '01a219a8-dccf-7739-a0fe-6d10f2c2d1e4', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-dccb-75ae-bf46-89d770e3cc83', 2, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:26.703408+00', NULL, '\x7b22757365725f6964223a2230316132313961382d646363622d373561652d626634362d383964373730653363633833222c226e616d65223a226c617465332032222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32362e3730333430385a227d'),
	('1094', 50, '01a219a8-dcd3-7530-93f7-354d25b62f17', 'com.example.customer.user-registered.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-dcd3-74fb-b5f6-ca8875806b96', 1, 'https://example.com/twinbox/events/user-registered.v1.json', '2026-11-26 21:00:26.707326+00', NULL, '\x7b22757365725f6964223a2230316132313961382d646364332d373466622d623566362d636138383735383036623936222c22656d61696c223a226c61746534406578616d706c652e6f7267222c226e616d65223a226c61746534222c22726567697374657265645f6174223a22323032362d31312d32365432313a30303a32362e3730373332365a227d'),
	('1095', 51, '01a219a8-dcd5-7c47-9095-709df891943a', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-dcd3-74fb-b5f6-ca8875806b96', 2, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:26.709674+00', NULL, '\x7b22757365725f6964223a2230316132313961382d646364332d373466622d623566362d636138383735383036623936222c226e616d65223a226c617465342032222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32362e3730393637345a227d'),
	('1096', 52, '01a219a8-dcdb-752c-9cb1-c79d9cefe292', 'com.example.customer.user-registered.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-dcdb-74ec-9b50-357b6063e35c', 1, 'https://example.com/twinbox/events/user-registered.v1.json', '2026-11-26 21:00:26.715323+00', NULL, '\x7b22757365725f6964223a2230316132313961382d646364622d373465632d396235302d333537623630363365333563222c22656d61696c223a226c61746535406578616d706c652e6f7267222c226e616d65223a226c61746535222c22726567697374657265645f6174223a22323032362d31312d32365432313a30303a32362e3731353332335a227d'),
	('1097', 53, '01a219a8-dcdf-7b4c-86cf-83d49e649056', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d15a-71af-ba6d-a7f67748488d', 9, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:26.719661+00', NULL, '\x7b22757365725f6964223a2230316132313961382d643135612d373161662d626136642d613766363737343834383864222c226e616d65223a226164612039222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32362e3731393636315a227d'),
	('1077', 36, '01a219a8-dc84-7e49-8ee7-38a14e2fc509', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d1a1-780a-a486-7664f1472f20', 2, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:26.628891+00', NULL, '\x7b22757365725f6964223a2230316132313961382d643161312d373830612d613438362d373636346631343732663230222c226e616d65223a226672616e6b2032222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32362e3632383839315a227d'),
	('1119', 69, '01a219a8-dd6b-7ed6-93c9-317c2709ed88', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-dcaf-75e5-a13e-fea15f7c39e4', 3, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:26.859716+00', NULL, '\x7b22757365725f6964223a2230316132313961382d646361662d373565352d613133652d666561313566376333396534222c226e616d65223a226c617465312033222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32362e3835393731365a227d'),
	('1120', 70, '01a219a8-dd71-7337-9dc0-1cc27bf21a9d', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d186-7b6a-a637-eb9efb179872', 9, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:26.864691+00', NULL, '\x7b22757365725f6964223a2230316132313961382d643138362d376236612d613633372d656239656662313739383732222c226e616d65223a22646f72612039222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32362e3836343639315a227d'),
	('1121', 71, '01a219a8-dd73-7aa3-9fb5-cb109224a23d', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d15a-71af-ba6d-a7f67748488d', 11, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:26.867565+00', NULL, '\x7b22757365725f6964223a2230316132313961382d643135612d373161662d626136642d613766363737343834383864222c226e616d65223a22616461203131222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32362e3836373536355a227d'),
	('1122', 72, '01a219a8-dd7b-7431-862f-7d56967cb5eb', 'com.example.customer.user-registered.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-dd7b-73c9-92db-561f91976f3a', 1, 'https://example.com/twinbox/events/user-registered.v1.json', '2026-11-26 21:00:26.875248+00', NULL, '\x7b22757365725f6964223a2230316132313961382d646437622d373363392d393264622d353631663931393736663361222c22656d61696c223a226166746572406578616d706c652e6f7267222c226e616d65223a224166746572222c22726567697374657265645f6174223a22323032362d31312d32365432313a30303a32362e3837353234385a227d'),
	('1123', 73, '01a219a8-dd7e-79f4-bbe1-d11765200594', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '64aa378e-5222-45a8-aeb2-94591e2f8339', 2, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-01-02 03:04:05+00', NULL, '\x7b22757365725f6964223a2236346161333738652d353232322d343561382d616562322d393435393165326638333339222c226e616d65223a22476976656e222c2272656e616d65645f6174223a22323032362d30312d30325430333a30343a30355a227d'),
	('1098', 54, '01a219a8-dce3-76c0-808b-d09969c32631', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-dcdb-74ec-9b50-357b6063e35c', 2, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:26.723297+00', NULL, '\x7b22757365725f6964223a2230316132313961382d646364622d373465632d396235302d333537623630363365333563222c226e616d65223a226c617465352032222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32362e3732333239375a227d'),
	('1099', 55, '01a219a8-dce7-7458-b1ee-6ef09297ccbb', 'com.example.customer.user-registered.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-dce7-7425-83e4-74790fb51d0c', 1, 'https://example.com/twinbox/events/user-registered.v1.json', '2026-11-26 21:00:26.727272+00', NULL, '\x7b22757365725f6964223a2230316132313961382d646365372d373432352d383365342d373437393066623531643063222c22656d61696c223a226c61746536406578616d706c652e6f7267222c226e616d65223a226c61746536222c22726567697374657265645f6174223a22323032362d31312d32365432313a30303a32362e3732373237325a227d'),
	('1100', 56, '01a219a8-dcef-7abf-be56-ea1217fde4ea', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d186-7b6a-a637-eb9efb179872', 7, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:26.7356+00', NULL, '\x7b22757365725f6964223a2230316132313961382d643138362d376236612d613633372d656239656662313739383732222c226e616d65223a22646f72612037222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32362e373335365a227d'),
	('1101', 57, '01a219a8-dcf2-7e42-a62e-02f44fbca29f', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-dce7-7425-83e4-74790fb51d0c', 2, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:26.73881+00', NULL, '\x7b22757365725f6964223a2230316132313961382d646365372d373432352d383365342d373437393066623531643063222c226e616d65223a226c617465362032222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32362e37333838315a227d'),
	('1102', 58, '01a219a8-dcf6-79ac-a035-239d70d6f010', 'com.example.customer.user-registered.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-dcf6-794f-88a8-8d8d23e3492e', 1, 'https://example.com/twinbox/events/user-registered.v1.json', '2026-11-26 21:00:26.74261+00', NULL, '\x7b22757365725f6964223a2230316132313961382d646366362d373934662d383861382d386438643233653334393265222c22656d61696c223a226c61746537406578616d706c652e6f7267222c226e616d65223a226c61746537222c22726567697374657265645f6174223a22323032362d31312d32365432313a30303a32362e37343236315a227d'),
	('1103', 59, '01a219a8-dcf8-786e-9e2e-24e3550a7ce6', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d177-722b-91c0-e9891462a896', 5, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:26.744432+00', NULL, '\x7b22757365725f6964223a2230316132313961382d643137372d373232622d393163302d653938393134363261383936222c226e616d65223a22626f622035222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32362e3734343433325a227d'),
	('1104', 60, '01a219a8-dcff-7a5e-b445-915a106f897e', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-dcf6-794f-88a8-8d8d23e3492e', 2, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:26.75157+00', NULL, '\x7b22757365725f6964223a2230316132313961382d646366362d373934662d383861382d386438643233653334393265222c226e616d65223a226c617465372032222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32362e37353135375a227d'),
	('1105', 61, '01a219a8-dd06-7d04-b883-c2566554879d', 'com.example.customer.user-registered.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-dd06-7cad-a7bb-5e5b8c68c95b', 1, 'https://example.com/twinbox/events/user-registered.v1.json', '2026-11-26 21:00:26.758831+00', NULL, '\x7b22757365725f6964223a2230316132313961382d646430362d376361642d613762622d356535623863363863393562222c22656d61696c223a226c61746538406578616d706c652e6f7267222c226e616d65223a226c61746538222c22726567697374657265645f6174223a22323032362d31312d32365432313a30303a32362e3735383833315a227d'),
	('1106', 62, '01a219a8-dd0b-7f13-992c-df3f50d2b8bc', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-dd06-7cad-a7bb-5e5b8c68c95b', 2, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:26.763852+00', NULL, '\x7b22757365725f6964223a2230316132313961382d646430362d376361642d613762622d356535623863363863393562222c226e616d65223a226c617465382032222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32362e3736333835325a227d'),
	('1107', 63, '01a219a8-dd0f-7516-99f4-6198a71d97cf', 'com.example.customer.user-registered.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-dd0f-74d7-85c6-44f7159c118a', 1, 'https://example.com/twinbox/events/user-registered.v1.json', '2026-11-26 21:00:26.767317+00', NULL, '\x7b22757365725f6964223a2230316132313961382d646430662d373464372d383563362d343466373135396331313861222c22656d61696c223a226c61746539406578616d706c652e6f7267222c226e616d65223a226c61746539222c22726567697374657265645f6174223a22323032362d31312d32365432313a30303a32362e3736373331375a227d'),
	('1108', 64, '01a219a8-dd17-79f0-b0aa-4a04bcb0d868', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d186-7b6a-a637-eb9efb179872', 8, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:26.775541+00', NULL, '\x7b22757365725f6964223a2230316132313961382d643138362d376236612d613633372d656239656662313739383732222c226e616d65223a22646f72612038222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32362e3737353534315a227d'),
	('1109', 65, '01a219a8-dd1a-7757-b14b-019291328aa0', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-d15a-71af-ba6d-a7f67748488d', 10, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:26.778398+00', NULL, '\x7b22757365725f6964223a2230316132313961382d643135612d373161662d626136642d613766363737343834383864222c226e616d65223a22616461203130222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32362e3737383339385a227d'),
	('1110', 66, '01a219a8-dd28-7939-908e-372fc696d0ac', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-dd0f-74d7-85c6-44f7159c118a', 2, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:26.792478+00', NULL, '\x7b22757365725f6964223a2230316132313961382d646430662d373464372d383563362d343466373135396331313861222c226e616d65223a226c617465392032222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32362e3739323437385a227d'),
	('1111', 67, '01a219a8-dd29-78cc-82a2-7971531b4d81', 'com.example.customer.user-registered.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-dd29-7889-8ea6-a8e868718402', 1, 'https://example.com/twinbox/events/user-registered.v1.json', '2026-11-26 21:00:26.793559+00', NULL, '\x7b22757365725f6964223a2230316132313961382d646432392d373838392d386561362d613865383638373138343032222c22656d61696c223a226c6174653130406578616d706c652e6f7267222c226e616d65223a226c6174653130222c22726567697374657265645f6174223a22323032362d31312d32365432313a30303a32362e3739333535395a227d'),
	('1112', 68, '01a219a8-dd2d-7e22-a35a-a8fb7460b494', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '01a219a8-dd29-7889-8ea6-a8e868718402', 2, 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-11-26 21:00:26.796873+00', NULL, '\x7b22757365725f6964223a2230316132313961382d646432392d373838392d386561362d613865383638373138343032222c226e616d65223a226c61746531302032222c2272656e616d65645f6174223a22323032362d31312d32365432313a30303a32362e3739363837335a227d');

INSERT INTO public.outbox_cursor VALUES
	('relay', 3, 'first-edition', '1970-01-01 00:00:00+00', 24, 7712587961069719984, '1056:1074:1056', 35, '1077:1115:1077', 68, 50, '{987,1070,1075}', '{25,34,35}', 0, NULL, NULL, NULL, NULL, NULL, NULL, '1795726820.300961/16461', NULL, 3);

INSERT INTO public.outbox_discarded VALUES
	(32);

INSERT INTO public.outbox_given_id VALUES
	('01a219a8-dc85-7769-b6e8-346caa2623dd', '\x7ce261329aef89750603625edf7bb2b32adef34fa14b1d6f8bfed9c445fdb002', 1, '2026-11-26 21:00:26.631929+00'),
	('01a219a8-dd7e-79f4-bbe1-d11765200594', '\x7ce261329aef89750603625edf7bb2b32adef34fa14b1d6f8bfed9c445fdb002', 0, '2026-11-26 21:00:26.879862+00');

INSERT INTO public.outbox_held VALUES
	('customer.users.v1', '01a219a8-d15a-71af-ba6d-a7f67748488d', 27),
	('customer.users.v1', '01a219a8-d15a-71af-ba6d-a7f67748488d', 28),
	('customer.users.v1', '01a219a8-d15a-71af-ba6d-a7f67748488d', 29),
	('customer.users.v1', '01a219a8-d177-722b-91c0-e9891462a896', 30),
	('customer.users.v1', '01a219a8-d177-722b-91c0-e9891462a896', 31),
	('customer.users.v1', '01a219a8-d15a-71af-ba6d-a7f67748488d', 35),
	('customer.users.v1', '01a219a8-d15a-71af-ba6d-a7f67748488d', 42),
	('customer.users.v1', '01a219a8-d177-722b-91c0-e9891462a896', 45);

INSERT INTO public.outbox_key VALUES
	('customer.users.v1', '01a219a8-d1a9-74a1-96ef-0c65c25287df', 1),
	('customer.users.v1', '01a219a8-d1b2-7336-b793-f90b552f98e9', 1),
	('customer.users.v1', '01a219a8-d1b6-7d0d-95f9-586760e0d216', 1),
	('customer.users.v1', '01a219a8-d1bc-787e-8f17-90ea55cdc218', 1),
	('customer.users.v1', '01a219a8-d1c4-7d57-ae73-766f977699d6', 1),
	('customer.users.v1', '01a219a8-d1cd-7469-b10c-b378d2d140e6', 2),
	('customer.users.v1', '01a219a8-d1e8-79ca-87f3-94d842c90292', 2),
	('customer.users.v1', '01a219a8-d186-7b6a-a637-eb9efb179872', 9),
	('customer.users.v1', '01a219a8-d15a-71af-ba6d-a7f67748488d', 11),
	('customer.users.v1', '01a219a8-dd7b-73c9-92db-561f91976f3a', 1),
	('customer.users.v1', '64aa378e-5222-45a8-aeb2-94591e2f8339', 2),
	('dlq.twinbox.e2e-9aad4afb.customer.profile.customer.users.v1', 'someone-2', 1),
	('dlq.twinbox.e2e-9aad4afb.customer.profile.customer.users.v1', '01a219a8-d1cd-7469-b10c-b378d2d140e6', 1),
	('dlq.twinbox.e2e-9aad4afb.customer.profile.customer.users.v1', '01a219a8-d1e8-79ca-87f3-94d842c90292', 1),
	('dlq.twinbox.e2e-9aad4afb.customer.profile.customer.users.v1', 'someone-0', 1),
	('dlq.twinbox.e2e-9aad4afb.customer.profile.customer.users.v1', 'someone-1', 1),
	('dlq.twinbox.e2e-9aad4afb.customer.profile.customer.users.v1', 'd56565c1-0cdb-4e9c-9fef-bab1b7478c81', 1),
	('customer.users.v1', '01a219a8-d196-78ed-915b-86c3a6d5e08b', 2),
	('customer.users.v1', '739b6588-a1e0-49d9-ba6c-960a211ab0aa', 0),
	('customer.users.v1', '01a219a8-d17f-71fe-aa72-afade8568b03', 3),
	('customer.users.v1', '01a219a8-d1a1-780a-a486-7664f1472f20', 2),
	('customer.users.v1', '01a219a8-dc97-77c3-8466-3400dcc6fe2f', 2),
	('customer.users.v1', '01a219a8-dcc3-7550-b6dc-0861d971a7b2', 2),
	('customer.users.v1', '01a219a8-dccb-75ae-bf46-89d770e3cc83', 2),
	('customer.users.v1', '01a219a8-dcd3-74fb-b5f6-ca8875806b96', 2),
	('customer.users.v1', '01a219a8-dcdb-74ec-9b50-357b6063e35c', 2),
	('customer.users.v1', '01a219a8-dce7-7425-83e4-74790fb51d0c', 2),
	('customer.users.v1', '01a219a8-d177-722b-91c0-e9891462a896', 5),
	('customer.users.v1', '01a219a8-dcf6-794f-88a8-8d8d23e3492e', 2),
	('customer.users.v1', '01a219a8-dd06-7cad-a7bb-5e5b8c68c95b', 2),
	('customer.users.v1', '01a219a8-dd0f-74d7-85c6-44f7159c118a', 2),
	('customer.users.v1', '01a219a8-dd29-7889-8ea6-a8e868718402', 2),
	('customer.users.v1', '01a219a8-dcaf-75e5-a13e-fea15f7c39e4', 3);

INSERT INTO public.outbox_parked VALUES
	('customer.users.v1', '01a219a8-d15a-71af-ba6d-a7f67748488d', 'the record is too large', true, 1, '2026-11-26 21:00:26.332363+00', NULL),
	('customer.users.v1', '01a219a8-d177-722b-91c0-e9891462a896', 'no leader for partition', false, 9, '2026-11-26 21:00:26.332483+00', '2026-11-26 21:00:27.032278+00');

INSERT INTO public.outbox_scheduled VALUES
	('due-first', '2026-11-01 00:00:01+00', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '739b6588-a1e0-49d9-ba6c-960a211ab0aa', 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-01-02 03:04:05+00', '{"ce_scheduledname": "due-first"}', '\x7b22757365725f6964223a2237333962363538382d613165302d343964392d626136632d393630613231316162306161222c226e616d65223a225363686564756c6564222c2272656e616d65645f6174223a22323032362d30312d30325430333a30343a30355a227d', '2026-11-26 21:00:26.882581+00'),
	('due-second', '2026-11-01 00:00:02+00', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '739b6588-a1e0-49d9-ba6c-960a211ab0aa', 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-01-02 03:04:05+00', '{"ce_scheduledname": "due-second"}', '\x7b22757365725f6964223a2237333962363538382d613165302d343964392d626136632d393630613231316162306161222c226e616d65223a225363686564756c6564222c2272656e616d65645f6174223a22323032362d30312d30325430333a30343a30355a227d', '2026-11-26 21:00:26.883551+00'),
	('not-due', '2150-01-01 00:00:00+00', 'com.example.customer.user-renamed.v1', '/twinbox/customer', 'customer.users.v1', '739b6588-a1e0-49d9-ba6c-960a211ab0aa', 'https://example.com/twinbox/events/user-renamed.v1.json', '2026-01-02 03:04:05+00', '{"ce_scheduledname": "not-due"}', '\x7b22757365725f6964223a2237333962363538382d613165302d343964392d626136632d393630613231316162306161222c226e616d65223a225363686564756c6564222c2272656e616d65645f6174223a22323032362d30312d30325430333a30343a30355a227d', '2026-11-26 21:00:26.885092+00');

INSERT INTO public.outbox_topic VALUES
	('customer.users.v1', 6),
	('dlq.twinbox.e2e-9aad4afb.customer.profile.customer.users.v1', 6),
	('dlq.twinbox.e2e-9aad4afb.customer.mail.notification.mails.v1', 6);

INSERT INTO public.profile VALUES
	('01a219a8-d177-722b-91c0-e9891462a896', 'bob@example.org', 'Bob', 'pending_verification', 1, '2026-11-26 21:00:23.914738+00'),
	('01a219a8-d1b2-7336-b793-f90b552f98e9', 'cut@example.org', 'Cut', 'pending_verification', 1, '2026-11-26 21:00:23.924461+00'),
	('01a219a8-d1bc-787e-8f17-90ea55cdc218', 'later2@example.org', 'Later2', 'pending_verification', 1, '2026-11-26 21:00:23.925367+00'),
	('01a219a8-d196-78ed-915b-86c3a6d5e08b', 'eve@example.org', 'Eve', 'pending_verification', 1, '2026-11-26 21:00:23.907864+00'),
	('01a219a8-d17f-71fe-aa72-afade8568b03', 'carl@example.org', 'Carl', 'pending_verification', 1, '2026-11-26 21:00:23.933311+00'),
	('01a219a8-d1b6-7d0d-95f9-586760e0d216', 'later1@example.org', 'Later1', 'pending_verification', 1, '2026-11-26 21:00:23.934214+00'),
	('01a219a8-d1a1-780a-a486-7664f1472f20', 'frank@example.org', 'Frank', 'pending_verification', 1, '2026-11-26 21:00:23.934907+00'),
	('01a219a8-d1a9-74a1-96ef-0c65c25287df', 'refused@example.org', 'Refused', 'pending_verification', 1, '2026-11-26 21:00:23.935769+00'),
	('01a219a8-d1c4-7d57-ae73-766f977699d6', 'later3@example.org', 'Later3', 'pending_verification', 1, '2026-11-26 21:00:23.955727+00'),
	('01a219a8-d186-7b6a-a637-eb9efb179872', 'dora@example.org', 'Dora E', 'pending_verification', 3, '2026-11-26 21:00:24.019658+00'),
	('01a219a8-d26a-733a-b281-4e61ea891cf2', '01a219a8-d26a-733a-b281-4e61ea891cf2@example.org', 'Ada', 'pending_verification', 1, '2026-11-26 21:00:24.049394+00'),
	('01a219a8-d15a-71af-ba6d-a7f67748488d', 'ada@example.org', 'Countess', 'verified', 3, '2026-11-26 21:00:24.056334+00'),
	('01a219a8-d1e8-79ca-87f3-94d842c90292', 'doomed2@example.org', 'Calm 2', 'pending_verification', 2, '2026-11-26 21:00:24.184824+00');

INSERT INTO public.signup_allowance VALUES
	('\x777e4125a31d6b95023bf4349019d551b8ac607bd96c4743a6facc6c0f271901', '2026-11-27 01:48:23.785376+00'),
	('\x982f9c4f88c93772c4b7ec2116cfda5b2ac1d8e5dc5db73d76428197cf43896a', '2026-11-27 01:48:23.7997+00'),
	('\x26f89b560dedcec04670f954768a0cb85cb5775409e32e9a08ccb4167849639d', '2026-11-27 01:48:23.807585+00'),
	('\x18c14ea4d08a92f6ad59df2a0474b73b590979b382d23954fc6046bba963b9e5', '2026-11-27 01:48:23.817535+00'),
	('\x65a6a7ca25becdb6195c7bcaf0722a9d394ef939474fb20c38576dd9d48c67fc', '2026-11-27 01:48:23.83231+00'),
	('\x26109d93195ce2cb0d05e53cca36c16e59cd20125295593b0e0e7e7c468546de', '2026-11-27 01:48:23.845367+00'),
	('\x467e2307976782c7b06702b6c4d5ef097e71250724b8e750db79c4a53178bc2f', '2026-11-27 01:48:23.851457+00'),
	('\xfc6e0a0790d7b4eafba069700a0ec4aae9c5a84056f4df1c8f7bafbb8d2b8f19', '2026-11-27 01:48:23.858757+00'),
	('\x333ac3d416000cd138de065692e4306108cb002432553d614644dfca49a7f144', '2026-11-27 01:48:23.863304+00'),
	('\x64b60507c39f790395904067986e530f087bc835dd87d03739983a8b68a8d852', '2026-11-27 01:48:23.86922+00'),
	('\x1b51b4069b10cbb871f8fb84ee32c5fe5390623a158225b2be6e2b50bc6235b8', '2026-11-27 01:48:23.877304+00'),
	('\x95c8d0509007207c507af932e01907202b5393ec9af794ab7e20f5f24719e950', '2026-11-27 01:48:23.885691+00'),
	('\x923ea89c9ed1e1127e66cfde6712314f4032f65d933cb363c796d595d5e973a5', '2026-11-27 01:48:23.915765+00');

INSERT INTO public.users VALUES
	('01a219a8-d1a9-74a1-96ef-0c65c25287df', 'refused@example.org', 'refused@example.org', 'Refused', 'pending_verification', 1, '2026-11-26 21:00:23.849303+00', '2026-11-26 21:00:23.851242+00'),
	('01a219a8-d1b2-7336-b793-f90b552f98e9', 'cut@example.org', 'cut@example.org', 'Cut', 'pending_verification', 1, '2026-11-26 21:00:23.85821+00', '2026-11-26 21:00:23.858544+00'),
	('01a219a8-d1b6-7d0d-95f9-586760e0d216', 'later1@example.org', 'later1@example.org', 'Later1', 'pending_verification', 1, '2026-11-26 21:00:23.862855+00', '2026-11-26 21:00:23.863097+00'),
	('01a219a8-d1bc-787e-8f17-90ea55cdc218', 'later2@example.org', 'later2@example.org', 'Later2', 'pending_verification', 1, '2026-11-26 21:00:23.868556+00', '2026-11-26 21:00:23.868876+00'),
	('01a219a8-d1c4-7d57-ae73-766f977699d6', 'later3@example.org', 'later3@example.org', 'Later3', 'pending_verification', 1, '2026-11-26 21:00:23.876874+00', '2026-11-26 21:00:23.877169+00'),
	('01a219a8-d1cd-7469-b10c-b378d2d140e6', 'doomed1@example.org', 'doomed1@example.org', 'Calm 1', 'pending_verification', 2, '2026-11-26 21:00:23.885289+00', '2026-11-26 21:00:23.895794+00'),
	('01a219a8-d1e8-79ca-87f3-94d842c90292', 'doomed2@example.org', 'doomed2@example.org', 'Calm 2', 'pending_verification', 2, '2026-11-26 21:00:23.912641+00', '2026-11-26 21:00:23.930125+00'),
	('01a219a8-dd0f-74d7-85c6-44f7159c118a', 'late9@example.org', 'late9@example.org', 'late9 2', 'pending_verification', 2, '2026-11-26 21:00:26.767317+00', '2026-11-26 21:00:26.79253+00'),
	('01a219a8-d196-78ed-915b-86c3a6d5e08b', 'eve@example.org', 'eve@example.org', 'eve 2', 'pending_verification', 2, '2026-11-26 21:00:23.830585+00', '2026-11-26 21:00:23.832079+00'),
	('01a219a8-dd29-7889-8ea6-a8e868718402', 'late10@example.org', 'late10@example.org', 'late10 2', 'pending_verification', 2, '2026-11-26 21:00:26.793559+00', '2026-11-26 21:00:26.797851+00'),
	('01a219a8-dcaf-75e5-a13e-fea15f7c39e4', 'late1@example.org', 'late1@example.org', 'late1 3', 'pending_verification', 3, '2026-11-26 21:00:26.671386+00', '2026-11-26 21:00:26.859872+00'),
	('01a219a8-d186-7b6a-a637-eb9efb179872', 'dora@example.org', 'dora@example.org', 'dora 9', 'pending_verification', 9, '2026-11-26 21:00:23.814748+00', '2026-11-26 21:00:26.865029+00'),
	('01a219a8-d15a-71af-ba6d-a7f67748488d', 'ada@example.org', 'ada@example.org', 'ada 11', 'verified', 11, '2026-11-26 21:00:23.770111+00', '2026-11-26 21:00:26.86762+00'),
	('01a219a8-dd7b-73c9-92db-561f91976f3a', 'after@example.org', 'after@example.org', 'After', 'pending_verification', 1, '2026-11-26 21:00:26.875248+00', '2026-11-26 21:00:26.875737+00'),
	('01a219a8-d17f-71fe-aa72-afade8568b03', 'carl@example.org', 'carl@example.org', 'carl 3', 'pending_verification', 3, '2026-11-26 21:00:23.807131+00', '2026-11-26 21:00:26.257562+00'),
	('01a219a8-d1a1-780a-a486-7664f1472f20', 'frank@example.org', 'frank@example.org', 'frank 2', 'pending_verification', 2, '2026-11-26 21:00:23.841527+00', '2026-11-26 21:00:23.845147+00'),
	('01a219a8-dc97-77c3-8466-3400dcc6fe2f', 'late0@example.org', 'late0@example.org', 'late0 2', 'pending_verification', 2, '2026-11-26 21:00:26.647509+00', '2026-11-26 21:00:26.663171+00'),
	('01a219a8-dcc3-7550-b6dc-0861d971a7b2', 'late2@example.org', 'late2@example.org', 'late2 2', 'pending_verification', 2, '2026-11-26 21:00:26.691348+00', '2026-11-26 21:00:26.695462+00'),
	('01a219a8-dccb-75ae-bf46-89d770e3cc83', 'late3@example.org', 'late3@example.org', 'late3 2', 'pending_verification', 2, '2026-11-26 21:00:26.699372+00', '2026-11-26 21:00:26.703441+00'),
	('01a219a8-dcd3-74fb-b5f6-ca8875806b96', 'late4@example.org', 'late4@example.org', 'late4 2', 'pending_verification', 2, '2026-11-26 21:00:26.707326+00', '2026-11-26 21:00:26.709725+00'),
	('01a219a8-dcdb-74ec-9b50-357b6063e35c', 'late5@example.org', 'late5@example.org', 'late5 2', 'pending_verification', 2, '2026-11-26 21:00:26.715323+00', '2026-11-26 21:00:26.723328+00'),
	('01a219a8-dce7-7425-83e4-74790fb51d0c', 'late6@example.org', 'late6@example.org', 'late6 2', 'pending_verification', 2, '2026-11-26 21:00:26.727272+00', '2026-11-26 21:00:26.738862+00'),
	('01a219a8-d177-722b-91c0-e9891462a896', 'bob@example.org', 'bob@example.org', 'bob 5', 'pending_verification', 5, '2026-11-26 21:00:23.799142+00', '2026-11-26 21:00:26.744474+00'),
	('01a219a8-dcf6-794f-88a8-8d8d23e3492e', 'late7@example.org', 'late7@example.org', 'late7 2', 'pending_verification', 2, '2026-11-26 21:00:26.74261+00', '2026-11-26 21:00:26.751611+00'),
	('01a219a8-dd06-7cad-a7bb-5e5b8c68c95b', 'late8@example.org', 'late8@example.org', 'late8 2', 'pending_verification', 2, '2026-11-26 21:00:26.758831+00', '2026-11-26 21:00:26.763899+00');

INSERT INTO public.verification_mail VALUES
	('01a219a8-d177-722b-91c0-e9891462a896', '01a219a8-d1de-7e5d-ac33-ac2462d4b5d5', '2026-11-26 21:00:23.982231+00'),
	('01a219a8-d15a-71af-ba6d-a7f67748488d', '01a219a8-d1ea-7598-ad3b-1632d2b9d6fe', '2026-11-26 21:00:23.980031+00'),
	('01a219a8-d196-78ed-915b-86c3a6d5e08b', '01a219a8-d1f8-7b8d-be18-222ca449a0c4', '2026-11-26 21:00:23.997348+00'),
	('01a219a8-d17f-71fe-aa72-afade8568b03', '01a219a8-d1f2-7176-8dca-ce07b5ffa344', '2026-11-26 21:00:23.991424+00'),
	('01a219a8-d186-7b6a-a637-eb9efb179872', '01a219a8-d1ea-75ad-a965-cb6af77db6f0', '2026-11-26 21:00:23.975878+00'),
	('01a219a8-d1a1-780a-a486-7664f1472f20', '01a219a8-d1e9-76c6-b9c7-b95ed7a1d71b', '2026-11-26 21:00:23.999551+00'),
	('01a219a8-d1cd-7469-b10c-b378d2d140e6', '01a219a8-d224-73ea-9af2-be8f376c0b98', '2026-11-26 21:00:24.013889+00'),
	('01a219a8-d1e8-79ca-87f3-94d842c90292', '01a219a8-d21a-77e8-91ef-bfdff6c86748', '2026-11-26 21:00:24.025683+00'),
	('01a219a8-d26a-733a-b281-4e61ea891cf2', '01a219a8-d270-78ad-8f6b-cd34fcc502e4', '2026-11-26 21:00:24.065445+00');

SELECT pg_catalog.setval('public.dead_letter_id_seq', 10, true);

SELECT pg_catalog.setval('public.migration_audit_id_seq', 2, true);

SELECT pg_catalog.setval('public.migration_customer_id_seq', 4, true);

SELECT pg_catalog.setval('public.migration_inbox_id_seq', 7, true);

SELECT pg_catalog.setval('public.migration_outbox_id_seq', 8, true);

SELECT pg_catalog.setval('public.operator_action_id_seq', 4, true);

SELECT pg_catalog.setval('public.outbox_position_seq', 73, true);

ALTER TABLE ONLY public.dead_letter
    ADD CONSTRAINT dead_letter_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.idempotency_key
    ADD CONSTRAINT idempotency_key_pkey PRIMARY KEY (scope, key);

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

ALTER TABLE ONLY public.migration_audit
    ADD CONSTRAINT migration_audit_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.migration_customer
    ADD CONSTRAINT migration_customer_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.migration_inbox
    ADD CONSTRAINT migration_inbox_pkey PRIMARY KEY (id);

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

ALTER TABLE ONLY public.profile
    ADD CONSTRAINT profile_pkey PRIMARY KEY (user_id);

ALTER TABLE ONLY public.signup_allowance
    ADD CONSTRAINT signup_allowance_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_email_key_key UNIQUE (email_key);

ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.verification_mail
    ADD CONSTRAINT verification_mail_pkey PRIMARY KEY (user_id);

CREATE INDEX dead_letter_discarded ON public.dead_letter USING btree (consumer, key_start, version) WHERE (state = 'discarded'::text);

CREATE UNIQUE INDEX dead_letter_event ON public.dead_letter USING btree (consumer, event_id, sha256(payload));

CREATE INDEX dead_letter_holds ON public.dead_letter USING btree (consumer, key_start, version, id) WHERE ((state = 'waiting'::text) AND holds);

CREATE INDEX dead_letter_waiting ON public.dead_letter USING btree (consumer, key_start, version, id) WHERE (state = 'waiting'::text);

CREATE INDEX idempotency_key_expires_at ON public.idempotency_key USING btree (expires_at);

CREATE INDEX inbox_foreign_processed_at ON public.inbox_foreign USING btree (processed_at);

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

CREATE INDEX signup_allowance_used_until ON public.signup_allowance USING btree (used_until);

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
