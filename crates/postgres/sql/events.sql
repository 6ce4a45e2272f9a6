-- Events: emission into the log. Public: emit and emit_many, which join the caller's transaction.
-- SQLSTATEs: MP015 the event cannot be accepted; MP016 its sequence number does not follow the previous one; MP017 its
-- event_id belongs to an event with other content. DETAIL is machine-readable. MP015: arrays, name, sequence, headers or
-- payload. MP016: 'repeated' or 'gap', and the last number of the aggregate. MP017: the event_id.
-- Payloads that are not JSON fail with PostgreSQL's own 22P02.

-- Returns the slot of an aggregate that is seen for the first time. The slot is then stored, and never computed again.
create or replace function milepost.slot_of(aggregate_type text, aggregate_id text) returns smallint
language sql immutable strict parallel safe as $$
    select (hashtextextended(aggregate_id, hashtextextended(aggregate_type, 0)) & 63)::smallint
$$;

-- Returns whether two JSON texts are equal as jsonb: 1.0 equals 1, and the order of keys does not matter.
create or replace function milepost.same_json(one json, other json) returns boolean language plpgsql immutable as $$
begin
    return one::text = other::text or one::jsonb = other::jsonb;
exception when data_exception then
    -- json accepts values that jsonb does not, such as numbers of any size.
    return false;
end
$$;

-- Returns whether an event can have this sequence number; null: the number is assigned.
create or replace function milepost.is_sequence(sequence bigint) returns boolean language sql immutable parallel safe as $$
    select sequence is null or sequence between 1 and 9000000000000000000
$$;

-- Refuses a number that follows the largest one; at: the place of the event in the call.
create or replace function milepost.refuse_beyond(sequence bigint, at bigint, aggregate_type text, aggregate_id text) returns void
language plpgsql immutable parallel safe as $$
begin
    if not milepost.is_sequence(sequence) then
        raise exception using errcode = 'MP015', detail = 'sequence',
            message = format('event %s of the call: %s/%s has no sequence left', at, aggregate_type, aggregate_id);
    end if;
end
$$;

-- Returns the problem of an event's headers; null if there is none. They are sent as headers of brokers and of HTTP.
create or replace function milepost.refuse_headers(headers jsonb) returns text language plpgsql immutable parallel safe as $$
declare
    refused text;
    given bigint;
    bytes bigint;
begin
    if jsonb_typeof(headers) <> 'object' then
        return 'the headers must be an object of strings';
    end if;
    select min(format('the header %s %s', to_json(left(h.key, 60)), h.why)) filter (where h.why is not null), count(*),
           coalesce(sum(octet_length(h.key) + octet_length(h.value)), 0)
    into refused, given, bytes
    from (
        select e.key, e.value #>> '{}' as value, case
            when jsonb_typeof(e.value) <> 'string' then 'is not a string'
            when e.key !~ '^[A-Za-z0-9_.-]+$' then 'has a name that brokers refuse: letters, digits and -_. are allowed'
            when milepost.has_control(e.value #>> '{}') then 'has control characters'
            when row_number() over (partition by lower(e.key)) > 1 then 'is there twice: HTTP does not distinguish upper and lower case'
            end as why
        from jsonb_each(headers) e
    ) h;
    if given > 50 or bytes > 8192 then
        return format('%s headers with %s bytes are too much: an event has at most 50 headers with 8192 bytes', given, bytes);
    end if;
    return refused;
end
$$;

-- Refuses events that cannot be accepted; the error names the event and the reason.
create or replace function milepost.check_events(
    aggregate_types text[], aggregate_ids text[], event_types text[], aggregate_seqs bigint[], headers jsonb[], payloads json[],
    payload_bytes_max bigint
) returns void language plpgsql as $$
declare
    bad record;
begin
    select c.ord, c.refusal[1] as word, c.refusal[2] as why into bad from (
        select i.ord, case
            when i.aggregate_type is null or i.aggregate_type = '' or octet_length(i.aggregate_type) > 200 then array['name', 'the type of the aggregate must have 1 to 200 bytes']
            when i.aggregate_id is null or i.aggregate_id = '' or octet_length(i.aggregate_id) > 1000 then array['name', 'the id of the aggregate must have 1 to 1000 bytes']
            when i.event_type is null or i.event_type = '' or octet_length(i.event_type) > 200 then array['name', 'the type of the event must have 1 to 200 bytes']
            when milepost.has_control(concat(i.aggregate_type, i.aggregate_id, i.event_type)) then array['name', 'types and ids must not have control characters']
            when milepost.is_deceptive(concat(i.aggregate_type, i.event_type)) then array['name', 'types must not have characters that change the direction of text, or break lines']
            when i.aggregate_type in ('.', '..') or i.event_type in ('.', '..') then array['name', 'the types . and .. cannot be used: programs remove them from URLs']
            when starts_with(i.aggregate_type, 'milepost.') then array['name', 'types of aggregates that begin with milepost. are kept for state changes']
            when not milepost.is_sequence(i.seq) then array['sequence', format('the sequence %s is not a number from 1 to 9000000000000000000', i.seq)]
            when i.headers is not null and milepost.refuse_headers(i.headers) is not null then array['headers', milepost.refuse_headers(i.headers)]
            when payload_bytes_max is not null and milepost.refuse_event_payload(i.payload, payload_bytes_max) is not null
                then array['payload', 'the payload ' || milepost.refuse_event_payload(i.payload, payload_bytes_max)]
            end as refusal
        from unnest(aggregate_types, aggregate_ids, event_types, aggregate_seqs, headers, payloads::text[])
            with ordinality as i(aggregate_type, aggregate_id, event_type, seq, headers, payload, ord)
    ) c
    where c.refusal is not null
    order by c.ord
    limit 1;
    if found then
        raise exception using errcode = 'MP015', message = format('event %s of the call: %s', bad.ord - 1, bad.why), detail = bad.word;
    end if;
end
$$;

-- Wakes an idle relay when this transaction commits, as milepost.wake() wakes workers.
create or replace function milepost.wake_relay() returns void language plpgsql as $$
begin
    if current_setting('milepost.wake', true) = 'off' then
        return;
    end if;
    if not pg_try_advisory_xact_lock_shared(19792, 4) then
        notify milepost_log, 'ready';
    end if;
end
$$;

-- Emits several events, all or none, and returns the results in the same order. Arrays must have as many elements as
-- aggregate_types; a null array or element means the default. Events of one aggregate are numbered in the order of the call.
-- event_ids: an event that exists with the same content is returned with duplicate = true and nothing changes.
-- aggregate_seqs: numbers assigned by the caller; each must follow the last one of its aggregate, or be greater if
-- gaps_allowed; the first event of an aggregate may have any. payload_bytes_max: null: the caller has checked the payloads,
-- which is accepted only from trusted accounts.
create or replace function milepost.emit_many(
    aggregate_types text[],
    aggregate_ids text[],
    event_types text[],
    payloads json[] default null,
    event_ids uuid[] default null,
    aggregate_seqs bigint[] default null,
    headers jsonb[] default null,
    gaps_allowed boolean[] default null,
    payload_bytes_max bigint default 1048576
) returns table (event_id uuid, aggregate_seq bigint, duplicate boolean) language plpgsql security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
    events int := coalesce(cardinality(aggregate_types), 0);
    bytes_max bigint := payload_bytes_max;
    ids uuid[] := event_ids;
    slots smallint[];
    seqs bigint[];
    duplicates boolean[];
    lasts bigint[];
    refused bigint;
    other record;
    made int;
begin
    if events = 0 then
        return;
    end if;
    if not milepost.caller_is_trusted() then
        bytes_max := least(bytes_max, 1048576);
    end if;
    if events <> any (array[
        coalesce(cardinality(aggregate_ids), 0), coalesce(cardinality(event_types), 0), coalesce(cardinality(payloads), events),
        coalesce(cardinality(event_ids), events), coalesce(cardinality(aggregate_seqs), events),
        coalesce(cardinality(headers), events), coalesce(cardinality(gaps_allowed), events)])
    then
        raise exception using errcode = 'MP015', message = 'the arrays must have as many elements as aggregate_types', detail = 'arrays';
    end if;
    -- Elements are read by number below: from 1 on, in one dimension.
    if 1 <> any (array[
        array_ndims(aggregate_types), array_lower(aggregate_types, 1), array_ndims(aggregate_ids), array_lower(aggregate_ids, 1),
        array_ndims(event_types), array_lower(event_types, 1), array_ndims(payloads), array_lower(payloads, 1),
        array_ndims(ids), array_lower(ids, 1), array_ndims(aggregate_seqs), array_lower(aggregate_seqs, 1),
        array_ndims(headers), array_lower(headers, 1), array_ndims(gaps_allowed), array_lower(gaps_allowed, 1)])
    then
        aggregate_types := array(select unnest(aggregate_types));
        aggregate_ids := array(select unnest(aggregate_ids));
        event_types := array(select unnest(event_types));
        payloads := case when payloads is not null then array(select unnest(payloads)) end;
        ids := case when ids is not null then array(select unnest(ids)) end;
        aggregate_seqs := case when aggregate_seqs is not null then array(select unnest(aggregate_seqs)) end;
        headers := case when headers is not null then array(select unnest(headers)) end;
        gaps_allowed := case when gaps_allowed is not null then array(select unnest(gaps_allowed)) end;
    end if;
    perform milepost.check_events(
        aggregate_types, aggregate_ids, event_types, aggregate_seqs, headers, payloads, bytes_max);
    if ids is null then
        ids := array(select milepost.uuid_v7() from generate_series(1, events));
    elsif array_position(ids, null) is not null then
        ids := array(select coalesce(i.id, milepost.uuid_v7()) from unnest(ids) with ordinality i(id, ord) order by i.ord);
    end if;

    -- Fast path for one new event with the next number, which is nearly every call: two rows and no further computation.
    if events = 1 and aggregate_seqs is null then
        insert into milepost.aggregate as a (aggregate_type, aggregate_id, last_seq, slot)
        values (aggregate_types[1], aggregate_ids[1], 1, milepost.slot_of(aggregate_types[1], aggregate_ids[1]))
        on conflict (aggregate_type, aggregate_id) do update set last_seq = a.last_seq + 1
        returning a.last_seq, array[a.slot] into aggregate_seq, slots;
        if aggregate_seq > 9000000000000000000 then
            perform milepost.refuse_beyond(aggregate_seq, 0, aggregate_types[1], aggregate_ids[1]);
        end if;
        insert into milepost.event (slot, event_id, aggregate_type, aggregate_id, aggregate_seq, event_type, headers, payload)
        values (slots[1], ids[1], aggregate_types[1], aggregate_ids[1], emit_many.aggregate_seq, event_types[1],
                nullif(headers[1], '{}'), coalesce(payloads[1], '{}'))
        on conflict (event_id) do nothing;
        if found then
            -- An event that was deleted since the snapshot is visible beside the one that this transaction has created.
            if not milepost.sees_commits() then
                if (select count(*) > 1 from milepost.event e where e.event_id = ids[1]) then
                    perform milepost.refuse_old_snapshot(format('the event %s', ids[1]));
                end if;
            end if;
            perform milepost.wake_relay();
            event_id := ids[1];
            duplicate := false;
            return next;
            return;
        end if;
        -- The event exists, in this or another aggregate; the statements below check which.
        update milepost.aggregate a set last_seq = a.last_seq - 1
        where a.aggregate_type = aggregate_types[1] and a.aggregate_id = aggregate_ids[1];
    end if;

    -- Locks the heads first, in order, so that two calls cannot deadlock: until the caller's transaction ends, other
    -- transactions that emit for these aggregates wait, and the statements below see events that others emitted before. Each
    -- head is raised by the maximum number of new events.
    insert into milepost.aggregate as a (aggregate_type, aggregate_id, last_seq, slot)
    select i.aggregate_type, i.aggregate_id, count(*), milepost.slot_of(i.aggregate_type, i.aggregate_id)
    from unnest(aggregate_types, aggregate_ids) i(aggregate_type, aggregate_id)
    group by i.aggregate_type, i.aggregate_id
    order by i.aggregate_type, i.aggregate_id
    on conflict (aggregate_type, aggregate_id) do update set last_seq = a.last_seq + excluded.last_seq;

    -- With an old snapshot, an event that was deleted since is visible, and must not count as a duplicate. The lock tells.
    if not milepost.sees_commits() then
        perform from milepost.event e where e.event_id = any (ids) for key share;
    end if;

    with input as materialized (
        select i.*, count(*) over (partition by i.aggregate_type, i.aggregate_id) as reserved,
               row_number() over (partition by i.id order by i.ord) > 1 as repeated
        from unnest(aggregate_types, aggregate_ids, ids, aggregate_seqs, gaps_allowed) with ordinality
            as i(aggregate_type, aggregate_id, id, given, gap_allowed, ord)
    ),
    seen as materialized (
        select i.*, a.slot, a.last_seq - i.reserved as stood_at, e.aggregate_seq as logged,
               i.repeated or e.event_id is not null as known
        from input i
        join milepost.aggregate a on a.aggregate_type = i.aggregate_type and a.aggregate_id = i.aggregate_id
        left join milepost.event e on e.event_id = i.id
    ),
    -- A given number starts a run, which the events without a given number continue.
    runs as (
        select s.*, count(s.given) over (partition by s.aggregate_type, s.aggregate_id, s.known order by s.ord) as run from seen s
    ),
    numbered as (
        select r.*, case when r.run = 0 then r.stood_at else first_value(r.given) over of_run - 1 end + row_number() over of_run as seq
        from runs r
        window of_run as (partition by r.aggregate_type, r.aggregate_id, r.known, r.run order by r.ord)
    ),
    placed as (
        select n.*, lag(n.seq, 1, n.stood_at) over (partition by n.aggregate_type, n.aggregate_id, n.known order by n.ord) as last,
               coalesce(n.logged, first_value(n.seq) over (partition by n.id order by n.ord)) as final
        from numbered n
    )
    select array_agg(p.slot order by p.ord), array_agg(p.final order by p.ord), array_agg(p.known order by p.ord),
           array_agg(p.last order by p.ord),
           min(p.ord) filter (where not p.known and p.given <> p.last + 1
                              and (p.given <= p.last or p.last > 0 and p.gap_allowed is not true))
    into slots, seqs, duplicates, lasts, refused
    from placed p;
    if refused is not null then
        raise exception using errcode = 'MP016',
            message = format(
                case when aggregate_seqs[refused] <= lasts[refused]
                     then 'event %s of the call: %s/%s is at sequence %s already: %s cannot follow'
                     else 'event %s of the call: %s/%s is at sequence %s: %s would leave a gap' end,
                refused - 1, aggregate_types[refused], aggregate_ids[refused], lasts[refused], aggregate_seqs[refused]),
            detail = case when aggregate_seqs[refused] <= lasts[refused] then 'repeated ' else 'gap ' end || lasts[refused],
            hint = case when aggregate_seqs[refused] <= lasts[refused] then 'to repeat an event, pass the event_id of its first emit'
                        else 'emit the missing events first, or allow gaps' end;
    end if;

    if true = any (select s > 9000000000000000000 from unnest(seqs) s) then
        perform milepost.refuse_beyond(i.seq, i.ord - 1, i.aggregate_type, i.aggregate_id)
        from unnest(seqs, aggregate_types, aggregate_ids) with ordinality i(seq, aggregate_type, aggregate_id, ord)
        order by i.ord;
    end if;

    -- If another transaction has just used an ID for an event of another aggregate, this statement waits for it and leaves
    -- the event out.
    insert into milepost.event (slot, event_id, aggregate_type, aggregate_id, aggregate_seq, event_type, headers, payload)
    select i.slot, i.id, i.aggregate_type, i.aggregate_id, i.seq, i.event_type, nullif(i.headers, '{}'), coalesce(i.payload, '{}')
    from unnest(slots, ids, aggregate_types, aggregate_ids, seqs, event_types, headers, payloads, duplicates) with ordinality
        as i(slot, id, aggregate_type, aggregate_id, seq, event_type, headers, payload, duplicate, ord)
    where not i.duplicate
    order by i.ord
    on conflict (event_id) do nothing;
    get diagnostics made = row_count;

    if made < events then
        select i.ord, i.id into other
        from unnest(ids, aggregate_types, aggregate_ids, aggregate_seqs, event_types, headers, payloads) with ordinality
            as i(id, aggregate_type, aggregate_id, given, event_type, headers, payload, ord)
        join milepost.event e on e.event_id = i.id
        where i.aggregate_type <> e.aggregate_type or i.aggregate_id <> e.aggregate_id or i.event_type <> e.event_type
           or i.given <> e.aggregate_seq or coalesce(i.headers, '{}') - 'traceparent' <> coalesce(e.headers, '{}') - 'traceparent'
           or not milepost.same_json(coalesce(i.payload, '{}'), e.payload)
        order by i.ord
        limit 1;
        if found then
            raise exception using errcode = 'MP017',
                message = format('event %s of the call: event %s exists with other content: an id identifies one event permanently',
                                 other.ord - 1, other.id),
                detail = other.id::text,
                hint = 'to repeat an emit, pass the same aggregate, type, headers, payload and sequence; for a new event, use a new id';
        end if;
    end if;
    if made < events or aggregate_seqs is not null then
        -- Corrects heads that were raised by too much or, with given numbers, by too little.
        update milepost.aggregate a set last_seq = coalesce(i.last, a.last_seq - i.reserved)
        from (
            select e.aggregate_type, e.aggregate_id, count(*) as reserved, max(e.seq) filter (where not e.duplicate) as last
            from unnest(aggregate_types, aggregate_ids, seqs, duplicates) e(aggregate_type, aggregate_id, seq, duplicate)
            group by e.aggregate_type, e.aggregate_id
        ) i
        where a.aggregate_type = i.aggregate_type and a.aggregate_id = i.aggregate_id;
    end if;

    if made > 0 then
        perform milepost.wake_relay();
    end if;
    if true = any (duplicates) then
        perform milepost.confirm_replication();
    end if;
    return query select * from unnest(ids, seqs, duplicates);
end
$$;

-- Emits one event. See emit_many.
create or replace function milepost.emit(
    aggregate_type text,
    aggregate_id text,
    event_type text,
    payload json default '{}',
    event_id uuid default null,
    aggregate_seq bigint default null,
    headers jsonb default null,
    gap_allowed boolean default false
) returns table (event_id uuid, aggregate_seq bigint, duplicate boolean) language sql as $$
    select * from milepost.emit_many(
        array[aggregate_type], array[aggregate_id], array[event_type], array[payload], array[event_id],
        case when aggregate_seq is not null then array[aggregate_seq] end, case when headers is not null then array[headers] end,
        array[gap_allowed])
$$;

-- Runs with the rights of its owner, so that an application needs no rights on tables; executable only by roles that are
-- granted it.
revoke execute on function milepost.emit_many from public;
