-- Enqueueing of jobs whose keys other jobs may hold, with a rule for each: on_duplicate, an object with the fields of OnDuplicate in the
-- library. enqueue_by_key and enqueue_many_by_key are public. See docs/adr/0041-duplicates.md.
--
-- Order of locks: the row of the key, the row of its holder in live, its row in job, then the group. Retention locks keys after jobs, but
-- deletes no job that waits.

-- Returns why a rule cannot be used with these options; null if it can.
create or replace function milepost.refuse_on_duplicate(rule jsonb, key text, starts_later boolean) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
    return case
        when rule is null then null
        when key is null then 'on_duplicate needs a key'
        when jsonb_typeof(rule) <> 'object' then 'on_duplicate must be an object, such as {"action": "replace"}'
        when coalesce(rule ->> 'action' not in ('keep', 'replace', 'debounce', 'throttle'), true)
            then 'the action of on_duplicate must be keep, replace, debounce or throttle'
        when rule - array['action', 'delay_ms', 'max_delay_ms', 'period_ms', 'unique', 'unique_for_ms'] <> '{}'
            then 'on_duplicate has an unknown field; it has action, delay_ms, max_delay_ms, period_ms, unique and unique_for_ms'
        when exists (
            select from unnest(array['delay_ms', 'max_delay_ms', 'period_ms', 'unique_for_ms']) f(name)
            where rule ? f.name and (jsonb_typeof(rule -> f.name) <> 'number' or rule ->> f.name !~ '^[1-9][0-9]{0,12}$'
                                     or (rule ->> f.name)::numeric > milepost.wait_ms_max()))
            then 'the times of on_duplicate must be from 1 ms to a hundred years'
        when (rule ->> 'action' = 'debounce') <> (rule ?& array['delay_ms', 'max_delay_ms'])
             or rule ->> 'action' <> 'debounce' and rule ?| array['delay_ms', 'max_delay_ms']
            then 'debounce needs delay_ms and max_delay_ms, and other actions have neither'
        when (rule ->> 'action' = 'throttle') <> (rule ? 'period_ms')
            then 'throttle needs period_ms, and other actions do not have it'
        when rule ? 'unique' and coalesce(rule ->> 'unique' not in ('forever', 'live', 'waiting'), true)
            then 'unique must be forever, live or waiting'
        when rule ->> 'action' = 'throttle' and rule ?| array['unique', 'unique_for_ms']
            then 'throttle has no unique: its period decides how long a job holds the key'
        when rule ?& array['unique', 'unique_for_ms'] then 'unique and unique_for_ms exclude each other; give one of them'
        when (rule ->> 'delay_ms')::bigint > (rule ->> 'max_delay_ms')::bigint then 'delay_ms must not be longer than max_delay_ms'
        when rule ->> 'action' = 'debounce' and starts_later then 'debounce decides the start; give no other start or delay'
        end;
end
$$;

-- Returns what a call does (the function OnDuplicate::decide of the library). now_state, created and token of the job that holds the
-- key: null if it was deleted; over_at: when it ended or failed permanently.
create or replace function milepost.decide_duplicate(
    rule jsonb, now_state milepost.job_state, token int, created timestamptz, over_at timestamptz
) returns text language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    action text := rule ->> 'action';
    waits boolean := coalesce(now_state in ('blocked', 'pending') and token = 0, false);
    is_free boolean := case
        when rule ? 'unique_for_ms' then over_at + (rule ->> 'unique_for_ms')::bigint * interval '1 millisecond' <= now()
        when action = 'throttle' then coalesce(created, over_at) + (rule ->> 'period_ms')::bigint * interval '1 millisecond' <= now()
        else case coalesce(rule ->> 'unique', case action when 'keep' then 'forever' else 'waiting' end)
            when 'live' then over_at is not null
            when 'waiting' then not waits
            else false end
        end;
begin
    return case
        when is_free then 'created'
        when action = 'throttle' then 'dropped'
        when waits and action = 'replace' then 'replaced'
        when waits and action = 'debounce' then 'moved'
        else 'kept' end;
end
$$;

-- Gives the key to this job if it is free by the rule, or locks the job that holds it if that is to be replaced. Returns what to do, and
-- the job that had the key before.
create or replace function milepost.settle_key(
    new_kind text, new_key text, new_id uuid, rule jsonb, out outcome text, out holder uuid
) language plpgsql
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
    deleted_at timestamptz;
    seen record;
begin
    loop
        select k.job_id, k.job_ended_at into holder, deleted_at from milepost.job_key k
        where k.kind = new_kind and k.key = new_key for update;
        if not found then
            insert into milepost.job_key (kind, key, job_id) values (new_kind, new_key, new_id) on conflict do nothing;
            if found then
                outcome := 'created';
                return;
            end if;
            -- Another transaction has taken the key meanwhile.
            continue;
        end if;
        if holder = new_id then
            -- The same call, which was repeated because its answer was lost.
            outcome := 'kept';
            return;
        end if;
        select l.state, l.token, j.created_at, coalesce(l.failed_at, e.ended_at, deleted_at) as over_at into seen
        from (select holder as id) one
        left join milepost.job j on j.id = one.id
        left join milepost.live l on l.id = one.id
        left join milepost.ended e on e.id = one.id;
        outcome := milepost.decide_duplicate(rule, seen.state, seen.token, seen.created_at, seen.over_at);
        if outcome in ('replaced', 'moved') then
            perform from milepost.live l where l.id = holder and l.state in ('blocked', 'pending') and l.token = 0 for update;
            -- It was claimed or ended meanwhile.
            continue when not found;
        elsif outcome = 'created' then
            update milepost.job_key k set job_id = new_id, job_ended_at = null where k.kind = new_kind and k.key = new_key;
            -- Retention locks jobs before keys: a job that it is deleting needs no mark.
            update milepost.job j set key_released = true
            where j.id = (select g.id from milepost.job g where g.id = holder for update skip locked);
        end if;
        return;
    end loop;
end
$$;

-- Enqueues the job at this place of a call, which has a rule. See enqueue_many_by_key.
create or replace function milepost.enqueue_one_by_key(
    place bigint, new_kind text, new_payload jsonb, new_key text, new_queue text, new_priority int, new_group text, run_at timestamptz, delay_ms bigint,
    new_attempts int, new_timeout_ms bigint, new_id uuid, payload_bytes_max bigint, new_traceparent text, rule jsonb,
    out job_id uuid, out outcome text
) language plpgsql
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
    holder uuid;
    start timestamptz := greatest(now(), coalesce(run_at, now() + delay_ms * interval '1 millisecond', now()));
    debounce_ms bigint := (rule ->> 'delay_ms')::bigint;
begin
    job_id := new_id;
    outcome := 'kept';
    -- A call whose answer was lost is repeated.
    if exists (select from milepost.job j where j.id = new_id) then
        return;
    end if;
    select s.outcome, s.holder into outcome, holder from milepost.settle_key(new_kind, new_key, new_id, rule) s;
    if outcome = 'created' then
        perform milepost.enqueue_many(
            array[new_kind], array[new_payload], array[new_key], array[new_queue], array[new_priority], array[new_group], array[run_at],
            array[coalesce(debounce_ms, delay_ms)], array[new_attempts], array[new_timeout_ms], array[new_id], payload_bytes_max,
            traceparents => array[new_traceparent]);
        return;
    end if;
    job_id := holder;
    if outcome not in ('replaced', 'moved') then
        return;
    end if;
    if debounce_ms is not null then
        select greatest(now(), least(now() + debounce_ms * interval '1 millisecond', j.created_at + (rule ->> 'max_delay_ms')::bigint * interval '1 millisecond')) into start
        from milepost.job j where j.id = holder;
    end if;
    update milepost.job j
    set payload = coalesce(new_payload, '{}'), priority = coalesce(new_priority, 2), max_attempts = coalesce(new_attempts, 25),
        timeout_ms = new_timeout_ms, traceparent = new_traceparent
    where j.id = holder and j.queue = coalesce(new_queue, 'default') and j.group_key is not distinct from new_group;
    if not found then
        raise exception using errcode = 'MP001',
            message = format('job %s of the call: the job that holds the key %L is in another queue or group, which on_duplicate '
                             'cannot change; give the same queue and group, or another key', place, left(new_key, 60));
    end if;
    perform milepost.apply_edit(
        holder, start, coalesce(new_priority, 2), coalesce(new_attempts, 25),
        case outcome when 'moved' then 'moved by another enqueue with its key' else 'replaced by another enqueue with its key' end);
end
$$;

-- Enqueues several jobs as enqueue_many does, all or none, in the order of the call for each key. on_duplicates: what happens to the job
-- that holds the key, and how long it holds it; null: as in enqueue_many. The outcome is created, kept, replaced, moved or dropped.
create or replace function milepost.enqueue_many_by_key(
    kinds text[],
    payloads jsonb[],
    on_duplicates jsonb[],
    keys text[] default null,
    queues text[] default null,
    priorities int[] default null,
    groups text[] default null,
    run_ats timestamptz[] default null,
    delays_ms bigint[] default null,
    max_attempts int[] default null,
    timeouts_ms bigint[] default null,
    ids uuid[] default null,
    payload_bytes_max bigint default 1048576,
    nominal_ats timestamptz[] default null,
    traceparents text[] default null
) returns table (job_id uuid, outcome text) language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    jobs int := coalesce(cardinality(payloads), 0);
    plain record;
    found_ids uuid[];
    found_outcomes text[];
    settled record;
    j record;
begin
    if jobs = 0 then
        return;
    end if;
    perform milepost.check_by_key(kinds, payloads, keys, on_duplicates, queues, priorities, groups, run_ats, delays_ms, max_attempts,
                                  timeouts_ms, ids, payload_bytes_max, nominal_ats, traceparents);
    ids := array(select coalesce(i.id, milepost.uuid_v7()) from unnest(kinds, ids) with ordinality i(kind, id, ord) order by i.ord);
    found_ids := ids;
    found_outcomes := array_fill('kept'::text, array[jobs]);

    -- A job without a rule is settled in its place in the call, too, if another one has its key with a rule.
    on_duplicates := array(
        select case when i.rule is null and i.key is not null and i.nominal_at is null
                         and bool_or(i.rule is not null) over (partition by i.kind, i.key)
                    then '{"action": "keep"}' else i.rule end
        from unnest(kinds, keys, nominal_ats, on_duplicates) with ordinality i(kind, key, nominal_at, rule, ord)
        order by i.ord);
    select array_agg(i.ord order by i.ord) as places, array_agg(i.id order by i.ord) as ids, array_agg(i.kind order by i.ord) as kinds,
           array_agg(i.payload order by i.ord) as payloads, array_agg(i.key order by i.ord) as keys,
           array_agg(i.queue order by i.ord) as queues, array_agg(i.priority order by i.ord) as priorities,
           array_agg(i.grp order by i.ord) as groups, array_agg(i.run_at order by i.ord) as run_ats,
           array_agg(i.delay_ms order by i.ord) as delays_ms, array_agg(i.attempts order by i.ord) as attempts,
           array_agg(i.timeout_ms order by i.ord) as timeouts_ms, array_agg(i.nominal_at order by i.ord) as nominal_ats,
           array_agg(i.traceparent order by i.ord) as traceparents
    into plain
    from unnest(ids, kinds, payloads, keys, queues, priorities, groups, run_ats, delays_ms, max_attempts, timeouts_ms, nominal_ats,
                traceparents, on_duplicates) with ordinality
        i(id, kind, payload, key, queue, priority, grp, run_at, delay_ms, attempts, timeout_ms, nominal_at, traceparent, rule, ord)
    where i.rule is null;
    if plain.ids is not null then
        for j in
            select m.job_id, m.duplicate, plain.places[m.ord] as place
            from milepost.enqueue_many(
                plain.kinds, plain.payloads, plain.keys, plain.queues, plain.priorities, plain.groups, plain.run_ats, plain.delays_ms,
                plain.attempts, plain.timeouts_ms, plain.ids, payload_bytes_max, plain.nominal_ats, plain.traceparents)
                with ordinality m(job_id, duplicate, ord)
        loop
            found_ids[j.place] := j.job_id;
            found_outcomes[j.place] := case when j.duplicate then 'kept' else 'created' end;
        end loop;
    end if;

    -- Sorted, so that two calls with the same keys cannot deadlock.
    for j in
        select *
        from unnest(ids, kinds, payloads, keys, queues, priorities, groups, run_ats, delays_ms, max_attempts, timeouts_ms, traceparents,
                    on_duplicates) with ordinality
            i(id, kind, payload, key, queue, priority, grp, run_at, delay_ms, attempts, timeout_ms, traceparent, rule, ord)
        where i.rule is not null
        order by i.kind, i.key, i.ord
    loop
        select o.job_id, o.outcome into settled
        from milepost.enqueue_one_by_key(
            j.ord - 1, j.kind, j.payload, j.key, j.queue, j.priority, j.grp, j.run_at, j.delay_ms, j.attempts, j.timeout_ms,
            j.id, payload_bytes_max, j.traceparent, j.rule) o;
        found_ids[j.ord] := settled.job_id;
        found_outcomes[j.ord] := settled.outcome;
    end loop;
    if 'kept' = any (found_outcomes) or 'dropped' = any (found_outcomes) then
        perform milepost.confirm_replication();
    end if;
    return query select f.id, f.outcome from unnest(found_ids, found_outcomes) f(id, outcome);
end
$$;

-- Refuses jobs that enqueue_many_by_key cannot accept, before anything is changed: those that enqueue_many refuses, and rules that do not fit.
create or replace function milepost.check_by_key(
    kinds text[], payloads jsonb[], keys text[], on_duplicates jsonb[], queues text[], priorities int[], groups text[],
    run_ats timestamptz[], delays_ms bigint[], max_attempts int[], timeouts_ms bigint[], ids uuid[], payload_bytes_max bigint,
    nominal_ats timestamptz[], traceparents text[]
) returns void language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    jobs int := cardinality(payloads);
    bad record;
    is_trusted boolean := milepost.caller_is_trusted();
begin
    if jobs <> any (array[
        coalesce(cardinality(kinds), 0), coalesce(cardinality(keys), jobs), coalesce(cardinality(on_duplicates), 0),
        coalesce(cardinality(queues), jobs), coalesce(cardinality(priorities), jobs), coalesce(cardinality(groups), jobs),
        coalesce(cardinality(run_ats), jobs), coalesce(cardinality(delays_ms), jobs), coalesce(cardinality(max_attempts), jobs),
        coalesce(cardinality(timeouts_ms), jobs), coalesce(cardinality(ids), jobs), coalesce(cardinality(nominal_ats), jobs),
        coalesce(cardinality(traceparents), jobs)])
    then
        raise exception using errcode = 'MP001', message = 'the arrays must have as many elements as payloads';
    end if;
    perform milepost.check_jobs(kinds, queues, keys, groups, priorities, max_attempts, run_ats, delays_ms, timeouts_ms);
    if traceparents is not null then
        perform milepost.check_traceparents(traceparents);
    end if;
    if not is_trusted then
        perform milepost.refuse_reserved(kinds, keys, groups, nominal_ats);
        payload_bytes_max := least(payload_bytes_max, 1048576);
    end if;
    select i.ord - 1 as at, r.why into bad
    from unnest(kinds, payloads, keys, run_ats, delays_ms, nominal_ats, on_duplicates) with ordinality
        i(kind, payload, key, run_at, delay_ms, nominal_at, rule, ord)
    cross join lateral (select coalesce(
        milepost.refuse_on_duplicate(i.rule, i.key, i.run_at is not null or i.delay_ms is not null),
        case when i.rule is not null and i.nominal_at is not null then 'a tick of a schedule cannot have on_duplicate' end,
        case when i.rule is not null and exists (select from milepost.bulk_definition d where d.name = i.kind)
            then format('the kind %L is a bulk job, whose runs cannot have on_duplicate', i.kind) end,
        case when payload_bytes_max is not null
            then 'the payload ' || milepost.refuse_document(i.payload, payload_bytes_max) end) as why) r
    where r.why is not null order by i.ord limit 1;
    if found then
        raise exception using errcode = 'MP001', message = format('job %s of the call: %s', bad.at, bad.why);
    end if;
    if payload_bytes_max is not null and 'ffffffff-ffff-ffff-ffff-ffffffffffff' = any (ids) then
        raise exception using errcode = 'MP001',
            message = format('job %s of the call: the id %s is reserved; generate a UUIDv7',
                array_position(ids, 'ffffffff-ffff-ffff-ffff-ffffffffffff') - 1, 'ffffffff-ffff-ffff-ffff-ffffffffffff');
    end if;
end
$$;

-- Enqueues one job with a rule. See enqueue_many_by_key. Not a version of enqueue: a call of that with untyped nulls would be ambiguous.
create or replace function milepost.enqueue_by_key(
    kind text,
    payload jsonb,
    key text,
    on_duplicate jsonb,
    queue text default null,
    priority int default null,
    group_key text default null,
    run_at timestamptz default null,
    max_attempts int default null,
    timeout_ms bigint default null,
    id uuid default null,
    traceparent text default null
) returns table (job_id uuid, outcome text) language plpgsql as $$
begin
    return query select * from milepost.enqueue_many_by_key(
        array[kind], array[payload], array[on_duplicate], array[key], array[queue], array[priority], array[group_key],
        array[run_at], null, array[max_attempts], array[timeout_ms],
        array[coalesce(id, milepost.uuid_v7())], traceparents => array[traceparent]);
end
$$;

-- For payloads of other types; see payload_types.sql.
create or replace function milepost.enqueue_by_key(
    kind text,
    payload json,
    key text,
    on_duplicate jsonb,
    queue text default null,
    priority int default null,
    group_key text default null,
    run_at timestamptz default null,
    max_attempts int default null,
    timeout_ms bigint default null,
    id uuid default null,
    traceparent text default null
) returns table (job_id uuid, outcome text) language plpgsql as $$
begin
    return query select * from milepost.enqueue_by_key(
        kind, payload::jsonb, key, on_duplicate, queue, priority, group_key, run_at, max_attempts, timeout_ms, id, traceparent);
end
$$;

create or replace function milepost.enqueue_by_key(
    kind text,
    payload text,
    key text,
    on_duplicate jsonb,
    queue text default null,
    priority int default null,
    group_key text default null,
    run_at timestamptz default null,
    max_attempts int default null,
    timeout_ms bigint default null,
    id uuid default null,
    traceparent text default null
) returns table (job_id uuid, outcome text) language plpgsql as $$
begin
    return query select * from milepost.enqueue_by_key(
        kind, payload::jsonb, key, on_duplicate, queue, priority, group_key, run_at, max_attempts, timeout_ms, id, traceparent);
end
$$;

-- Runs with the rights of its owner, like enqueue_many.
revoke execute on function milepost.enqueue_many_by_key from public;
