-- enqueue and emit for callers whose payload is a value of another type: drivers bind a JSON value as json, as jsonb or as text, and PostgreSQL converts
-- none of them into another one in a call. A payload without a type, such as a literal, is text. The arguments are those of enqueue (api.sql) and emit
-- (events.sql), but the payload has no default: otherwise a call without a payload would be ambiguous.

create or replace function milepost.enqueue(
    kind text,
    payload json,
    key text default null,
    queue text default null,
    priority int default null,
    group_key text default null,
    run_at timestamptz default null,
    max_attempts int default null,
    timeout_ms bigint default null,
    id uuid default null,
    traceparent text default null
) returns table (job_id uuid, duplicate boolean) language plpgsql as $$
begin
    return query select * from milepost.enqueue(
        kind, payload::jsonb, key, queue, priority, group_key, run_at, max_attempts, timeout_ms, id, traceparent);
end
$$;

create or replace function milepost.enqueue(
    kind text,
    payload text,
    key text default null,
    queue text default null,
    priority int default null,
    group_key text default null,
    run_at timestamptz default null,
    max_attempts int default null,
    timeout_ms bigint default null,
    id uuid default null,
    traceparent text default null
) returns table (job_id uuid, duplicate boolean) language plpgsql as $$
begin
    return query select * from milepost.enqueue(
        kind, payload::jsonb, key, queue, priority, group_key, run_at, max_attempts, timeout_ms, id, traceparent);
end
$$;

-- The event has the text that PostgreSQL writes for the jsonb value.
create or replace function milepost.emit(
    aggregate_type text,
    aggregate_id text,
    event_type text,
    payload jsonb,
    event_id uuid default null,
    aggregate_seq bigint default null,
    headers jsonb default null,
    gap_allowed boolean default false
) returns table (event_id uuid, aggregate_seq bigint, duplicate boolean) language sql as $$
    select * from milepost.emit(
        aggregate_type, aggregate_id, event_type, payload::json, event_id, aggregate_seq, headers, gap_allowed)
$$;

create or replace function milepost.emit(
    aggregate_type text,
    aggregate_id text,
    event_type text,
    payload text,
    event_id uuid default null,
    aggregate_seq bigint default null,
    headers jsonb default null,
    gap_allowed boolean default false
) returns table (event_id uuid, aggregate_seq bigint, duplicate boolean) language sql as $$
    select * from milepost.emit(
        aggregate_type, aggregate_id, event_type, payload::json, event_id, aggregate_seq, headers, gap_allowed)
$$;
