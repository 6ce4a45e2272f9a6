-- Checks of names and JSON documents that callers pass in SQL. The library makes the same checks in Rust (core::text, core::json).

-- Returns whether a text contains a control character. Not [[:cntrl:]], which depends on the collation.
create or replace function milepost.has_control(value text) returns boolean language sql immutable parallel safe as $$
    select value collate "C" ~ E'[\\u0001-\\u001f\\u007f-\\u009f]'
$$;

-- Returns whether a name contains a bidirectional control or a line separator, with which listings would show a different
-- name. Keys and IDs, which are an application's data, may contain them.
create or replace function milepost.is_deceptive(name text) returns boolean language sql immutable parallel safe as $$
    select name collate "C" ~ E'[\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069]'
$$;

-- Returns the number of nested arrays and objects in a JSON text. Its predecessor json_depth(json) is dropped: from
-- PostgreSQL 17 on, no parameter can be named json, and a parameter cannot be renamed by replacing its function.
drop function if exists milepost.json_depth(text);
create or replace function milepost.json_nesting(document text) returns int language sql immutable strict parallel safe as $$
    select coalesce(max(d.depth), 0)::int from (
        select sum(case when b.bracket in ('[', '{') then 1 else -1 end) over (order by b.n) as depth
        from regexp_split_to_table(
            regexp_replace(regexp_replace(document, E'"(\\\\.|[^"\\\\])*"', '', 'g'), '[^][{}]', '', 'g'), '') with ordinality b(bracket, n)
        where b.bracket <> ''
    ) d
$$;

-- Returns the problem of a payload, an input or a result, as the end of a sentence; null if there is none. bytes_max: limit
-- of its text, in which jsonb writes all digits of a number; null: no limit. Readers store numbers as doubles, of which the
-- largest is near 1.797e308 (from 2^1024 - 2^970 on, a number is rounded to infinity), and read 120 levels.
create or replace function milepost.refuse_document(document jsonb, bytes_max bigint) returns text
language plpgsql immutable parallel safe as $$
declare
    written text := document::text;
begin
    if octet_length(written) > bytes_max then
        return format('has %s bytes; the limit is %s', octet_length(written), bytes_max);
    end if;
    -- Only a text with this many brackets can be nested so deeply. An inner condition of its own, here and below, because a session plans
    -- all queries of a condition before it tests the first part.
    if length(written) - length(translate(written, '[{', '')) > 120 then
        if milepost.json_nesting(written) > 120 then
            return format('is nested %s levels deep; the limit is 120', milepost.json_nesting(written));
        end if;
    end if;
    if written ~ '[0-9]{250}' then
        if exists (
            select from jsonb_path_query(document, 'strict $.**') v(value)
            where jsonb_typeof(v.value) = 'number' and abs((v.value #>> '{}')::numeric) >= 2::numeric ^ 1024 - 2::numeric ^ 970)
        then
            return 'holds a number beyond 1.797e308, which readers cannot represent';
        end if;
    end if;
    -- A member with which the library's JSON parser marks its own values. A quote within a string follows a backslash.
    if strpos(written, '$serde_json::private::') > 0 and written ~ E'[^\\\\]"\\$serde_json::private::([^"\\\\]|\\\\.)*": ' then
        return 'has a member whose name begins with "$serde_json::private::", which is reserved; rename it';
    end if;
    return null;
end
$$;

-- The same for the payload of an event, which is stored as it was written: the type json accepts values that jsonb refuses.
create or replace function milepost.refuse_event_payload(payload text, bytes_max bigint) returns text language plpgsql immutable as $$
begin
    if octet_length(payload) > bytes_max then
        return format('has %s bytes; the limit is %s (payload_bytes_max)', octet_length(payload), bytes_max);
    end if;
    if length(payload) - length(translate(payload, '[{', '')) > 120 then
        if milepost.json_nesting(payload) > 120 then
            return format('is nested %s levels deep; the limit is 120', milepost.json_nesting(payload));
        end if;
    end if;
    -- An escaped backslash does not begin an escape.
    if strpos(payload, E'\\u0000') > 0 and strpos(replace(payload, E'\\\\', ''), E'\\u0000') > 0 then
        return E'holds a NUL character (\\u0000), which cannot be stored';
    end if;
    -- Only a lone surrogate, an exponent, a very long number or a reserved name, perhaps with escapes, can be what jsonb or refuse_document refuses.
    if payload ~ E'\\\\u[dD]|\\\\u00[2-7]|[0-9][eE]|[0-9]{250}|serde_json::private::' then
        begin
            return milepost.refuse_document(payload::jsonb, bytes_max);
        exception when data_exception then
            return 'holds an unpaired surrogate, or a number with a larger exponent or more digits than can be stored';
        end;
    end if;
    return null;
end
$$;

-- Returns whether the account of this session has rights on the tables of jobs: a worker, a server, or the owner of the
-- schema. Functions with their owner's rights rely on the checks of such a caller and allow it to use reserved names; an
-- application's account is not trusted. In these functions current_user is the owner, so this function uses the role that
-- the session has set, or the session's user.
create or replace function milepost.caller_is_trusted() returns boolean language sql stable as $$
    select has_table_privilege(coalesce(nullif(current_setting('role'), 'none'), session_user), 'milepost.job', 'insert')
$$;

-- The maximum size in bytes of an event that a consumer receives.
create or replace function milepost.document_bytes_limit() returns bigint language sql immutable parallel safe as $$
    select 16777216::bigint
$$;

-- Refuses a name that is not an IANA time zone. PostgreSQL accepts others as well: abbreviations, and rules such as ABC3DEF.
create or replace function milepost.check_zone(zone text) returns void language plpgsql as $$
begin
    if zone <> 'UTC' and (octet_length(zone) > 100 or not exists (
        select from pg_timezone_names z
        where z.name = zone and z.name !~ '^(posix|right)/' and z.name not in ('localtime', 'posixrules', 'Factory')))
    then
        raise exception using errcode = 'MP011',
            message = format('there is no time zone %L; zones have names such as Europe/Berlin', left(zone, 60));
    end if;
end
$$;
