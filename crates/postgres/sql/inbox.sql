-- The inbox: consumers receive each event once, in the order of its aggregate. Public: once, receive, next_parked and
-- expect_from, which join the caller's transaction, and put_consumer, inbox_ready, give_up_gaps, retry_dead and drop_dead.
-- SQLSTATEs: MP018 the call cannot be accepted, MP019 the dead letter does not allow the operation. DETAIL is
-- machine-readable. MP018: consumer, event, sequence or settings. MP019: 'missing' or 'past', and the dead letter.

-- Refuses a name that no consumer can have.
create or replace function milepost.check_consumer(consumer text) returns void language plpgsql as $$
begin
    if consumer is null or consumer = '' or octet_length(consumer) > 200 or milepost.has_control(consumer) or milepost.is_deceptive(consumer)
       or consumer in ('.', '..') then
        raise exception using errcode = 'MP018', detail = 'consumer',
            message = 'the name of the consumer must have 1 to 200 bytes and no control characters, and not be . or ..';
    end if;
end
$$;

-- Refuses the name of an aggregate, or a sequence, that no event can have.
create or replace function milepost.check_place(aggregate_type text, aggregate_id text, aggregate_seq bigint) returns void
language plpgsql as $$
begin
    if aggregate_type is null or aggregate_type = '' or octet_length(aggregate_type) > 200
       or aggregate_id is null or aggregate_id = '' or octet_length(aggregate_id) > 1000 then
        raise exception using errcode = 'MP018', detail = 'event',
            message = 'the type of the aggregate must have 1 to 200 bytes, its id 1 to 1000';
    end if;
    if milepost.has_control(concat(aggregate_type, aggregate_id)) or milepost.is_deceptive(aggregate_type)
       or aggregate_type in ('.', '..') then
        raise exception using errcode = 'MP018', detail = 'event',
            message = 'the type and the id of the aggregate must not have control characters, and the type must not be . or ..';
    end if;
    if aggregate_seq is null or not milepost.is_sequence(aggregate_seq) then
        raise exception using errcode = 'MP018', detail = 'sequence',
            message = format('the sequence %s is not a number from 1 to 9000000000000000000', coalesce(aggregate_seq::text, 'null'));
    end if;
end
$$;

-- Returns the settings of a consumer, or the defaults.
create or replace function milepost.settings_of(consumer text) returns milepost.inbox_consumer language sql stable as $$
    select coalesce((select c from milepost.inbox_consumer c where c.consumer = settings_of.consumer),
                    row(settings_of.consumer, 600000, 1000, 'dead_letter', false)::milepost.inbox_consumer)
$$;

-- Stores the settings of a consumer. Existing gaps keep their time limit.
create or replace function milepost.put_consumer(
    consumer text, gap_wait_ms bigint default 600000, parked_max int default 1000, gap_policy text default 'dead_letter',
    begins_anywhere boolean default false
) returns void language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    perform milepost.check_consumer(put_consumer.consumer);
    insert into milepost.inbox_consumer
    values (put_consumer.consumer, put_consumer.gap_wait_ms, put_consumer.parked_max, put_consumer.gap_policy, put_consumer.begins_anywhere)
    on conflict (consumer) do update set gap_wait_ms = excluded.gap_wait_ms, parked_max = excluded.parked_max,
        gap_policy = excluded.gap_policy, begins_anywhere = excluded.begins_anywhere;
exception when check_violation or not_null_violation then
    raise exception using errcode = 'MP018', detail = 'settings', message = format(
        'the settings of consumer %s are invalid: gap_wait_ms must be from 0 to a hundred years, parked_max from 1 to 100000, '
        'gap_policy dead_letter or skip_gap', to_json(left(put_consumer.consumer, 60)));
end
$$;

-- Counts a duplicate in a row that no other transaction is updating now.
create or replace function milepost.note_duplicate(consumer text) returns void language plpgsql set enable_seqscan = off as $$
#variable_conflict use_column
begin
    update milepost.inbox_tally t set duplicates = t.duplicates + 1
    where (t.consumer, t.shard) = (
        select s.consumer, s.shard from milepost.inbox_tally s where s.consumer = note_duplicate.consumer
        order by s.shard limit 1 for update skip locked
    );
    if not found then
        insert into milepost.inbox_tally (consumer, duplicates) values (note_duplicate.consumer, 1);
    end if;
end
$$;

-- Records that a consumer processes this event, in the caller's transaction, and returns whether it is the first time. If
-- the transaction rolls back, the record is gone. Waits for another transaction that records the same event.
create or replace function milepost.once(consumer text, event_id uuid) returns boolean language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    perform milepost.check_consumer(once.consumer);
    if once.event_id is null then
        raise exception using errcode = 'MP018', detail = 'event', message = 'the event has no id';
    end if;
    insert into milepost.processed_event (consumer, event_id) values (once.consumer, once.event_id) on conflict do nothing;
    if found then
        return true;
    end if;
    perform milepost.note_duplicate(once.consumer);
    return false;
end
$$;

-- Recomputes, for an aggregate that the caller has locked, whether the next event is here, and until when the other events
-- wait for it.
create or replace function milepost.look_again(consumer text, aggregate_type text, aggregate_id text) returns void
language plpgsql set enable_seqscan = off as $$
#variable_conflict use_column
begin
    update milepost.aggregate_checkpoint c
    set ready = f.follows,
        gives_up_at = case when c.parked > 0 and not f.follows
            then f.oldest + (milepost.settings_of(look_again.consumer)).gap_wait_ms * interval '1 millisecond' end
    from (
        select exists (select from milepost.inbox_parked p
                       where p.consumer = k.consumer and p.aggregate_type = k.aggregate_type and p.aggregate_id = k.aggregate_id
                         and p.aggregate_seq = k.last_seq + 1
                       -- OFFSET 0 prevents a plan that hashes the whole table.
                       offset 0)
            or exists (select from milepost.inbox_dead d
                       where d.consumer = k.consumer and d.aggregate_type = k.aggregate_type and d.aggregate_id = k.aggregate_id
                         and d.aggregate_seq = k.last_seq + 1 and d.event_id is not null and d.reason = 'gap'
                       offset 0) as follows,
               (select min(p.parked_at) from milepost.inbox_parked p
                where p.consumer = k.consumer and p.aggregate_type = k.aggregate_type and p.aggregate_id = k.aggregate_id) as oldest
        from milepost.aggregate_checkpoint k
        where k.consumer = look_again.consumer and k.aggregate_type = look_again.aggregate_type and k.aggregate_id = look_again.aggregate_id
    ) f
    where c.consumer = look_again.consumer and c.aggregate_type = look_again.aggregate_type and c.aggregate_id = look_again.aggregate_id;
end
$$;

-- Ends the wait for missing events of an aggregate that the caller has locked, by the policy of its consumer, for at most
-- rows_max events. why: a description. Returns the number of new dead letters.
create or replace function milepost.give_up_gap(consumer text, aggregate_type text, aggregate_id text, why text, rows_max bigint) returns bigint
language plpgsql set enable_seqscan = off as $$
#variable_conflict use_column
declare
    stands milepost.aggregate_checkpoint;
    first bigint;
    moved bigint;
begin
    select c.* into stands from milepost.aggregate_checkpoint c
    where c.consumer = give_up_gap.consumer and c.aggregate_type = give_up_gap.aggregate_type and c.aggregate_id = give_up_gap.aggregate_id;
    select min(k.aggregate_seq) into first from (
        select p.aggregate_seq from milepost.inbox_parked p
        where p.consumer = give_up_gap.consumer and p.aggregate_type = give_up_gap.aggregate_type and p.aggregate_id = give_up_gap.aggregate_id
        union all
        select d.aggregate_seq from milepost.inbox_dead d
        where d.consumer = give_up_gap.consumer and d.aggregate_type = give_up_gap.aggregate_type and d.aggregate_id = give_up_gap.aggregate_id
          and d.event_id is not null and d.reason = 'gap'
    ) k;
    if first is null or first = stands.last_seq + 1 then
        perform milepost.look_again(give_up_gap.consumer, give_up_gap.aggregate_type, give_up_gap.aggregate_id);
        return 0;
    end if;
    if (milepost.settings_of(give_up_gap.consumer)).gap_policy = 'skip_gap' then
        insert into milepost.inbox_dead (consumer, aggregate_type, aggregate_id, aggregate_seq, seq_to, reason, why)
        values (give_up_gap.consumer, give_up_gap.aggregate_type, give_up_gap.aggregate_id, stands.last_seq + 1, first - 1, 'never_came', give_up_gap.why);
        update milepost.aggregate_checkpoint c
        set last_seq = first - 1, ready = true, gives_up_at = null, last_event_id = null
        where c.consumer = give_up_gap.consumer and c.aggregate_type = give_up_gap.aggregate_type and c.aggregate_id = give_up_gap.aggregate_id;
        return 1;
    end if;
    with due as materialized (
        select p.aggregate_seq from milepost.inbox_parked p
        where p.consumer = give_up_gap.consumer and p.aggregate_type = give_up_gap.aggregate_type and p.aggregate_id = give_up_gap.aggregate_id
        order by p.aggregate_seq
        limit give_up_gap.rows_max
    ),
    gone as (
        delete from milepost.inbox_parked p using due
        where p.consumer = give_up_gap.consumer and p.aggregate_type = give_up_gap.aggregate_type and p.aggregate_id = give_up_gap.aggregate_id
          and p.aggregate_seq = due.aggregate_seq
        returning p.*
    )
    insert into milepost.inbox_dead (consumer, aggregate_type, aggregate_id, aggregate_seq, seq_to, reason, why, event_id, event_type, headers,
                                     payload, emitted_at)
    select g.consumer, g.aggregate_type, g.aggregate_id, g.aggregate_seq, g.aggregate_seq, 'gap', give_up_gap.why, g.event_id, g.event_type,
           g.headers, g.payload, g.emitted_at
    from gone g
    order by g.aggregate_seq;
    get diagnostics moved = row_count;
    update milepost.aggregate_checkpoint c
    set parked = c.parked - moved, dead = c.dead + moved, gives_up_at = case when c.parked > moved then c.gives_up_at end
    where c.consumer = give_up_gap.consumer and c.aggregate_type = give_up_gap.aggregate_type and c.aggregate_id = give_up_gap.aggregate_id;
    return moved;
end
$$;

-- Keeps an event that cannot be processed any more as a dead letter. Returns its verdict: 'late', or 'duplicate' if it was kept before.
create or replace function milepost.receive_late(
    consumer text, aggregate_type text, aggregate_id text, aggregate_seq bigint, event_id uuid, event_type text, payload json, headers jsonb,
    emitted_at timestamptz, why text
) returns text language plpgsql as $$
#variable_conflict use_column
begin
    insert into milepost.inbox_dead (consumer, aggregate_type, aggregate_id, aggregate_seq, seq_to, reason, why, event_id, event_type, headers,
                                     payload, emitted_at)
    values (receive_late.consumer, receive_late.aggregate_type, receive_late.aggregate_id, receive_late.aggregate_seq,
            receive_late.aggregate_seq, 'late', receive_late.why, receive_late.event_id, receive_late.event_type,
            nullif(receive_late.headers, '{}'), coalesce(receive_late.payload, '{}'), coalesce(receive_late.emitted_at, now()))
    on conflict do nothing;
    if found then
        return 'late';
    end if;
    perform milepost.note_duplicate(receive_late.consumer);
    return 'duplicate';
end
$$;

-- Receives an event of an aggregate, in the caller's transaction, if it is the next one. verdict: 'apply': process the event
-- in this transaction; 'duplicate': it was received before; 'parked': an earlier event is missing, and this one is kept
-- until that arrives; 'late': the consumer has skipped it,
-- or another event has its sequence, and it is kept as a dead letter. more: kept events may follow
-- now: call next_parked. Other transactions that receive events of this aggregate for this consumer wait until the caller's
-- transaction ends.
create or replace function milepost.receive(
    consumer text, aggregate_type text, aggregate_id text, aggregate_seq bigint, event_id uuid, event_type text,
    payload json default '{}', headers jsonb default null, emitted_at timestamptz default null
) returns table (verdict text, more boolean) language plpgsql security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
#variable_conflict use_column
declare
    stands milepost.aggregate_checkpoint;
    is_new boolean;
    parked_gone int;
    dead_gone int;
    settings milepost.inbox_consumer;
    refused text;
    header_bytes bigint;
    other_gone int;
    waiting uuid;
    late text;
begin
    perform milepost.check_consumer(receive.consumer);
    perform milepost.check_place(receive.aggregate_type, receive.aggregate_id, receive.aggregate_seq);
    if receive.event_id is null then
        raise exception using errcode = 'MP018', detail = 'event', message = 'the event has no id';
    end if;
    if receive.event_type is null or receive.event_type = '' or octet_length(receive.event_type) > 200 or milepost.has_control(receive.event_type)
       or milepost.is_deceptive(receive.event_type) or receive.event_type in ('.', '..') then
        raise exception using errcode = 'MP018', detail = 'event',
            message = 'the type of the event must have 1 to 200 bytes and no control characters, and not be . or ..';
    end if;
    if receive.headers is not null and (jsonb_typeof(receive.headers) <> 'object'
       or exists (select from jsonb_each(case when jsonb_typeof(receive.headers) = 'object' then receive.headers end) h
                  where jsonb_typeof(h.value) <> 'string'))
    then
        raise exception using errcode = 'MP018', detail = 'event', message = 'the headers must be an object of strings';
    end if;
    header_bytes := (select sum(octet_length(h.key) + octet_length(h.value)) from jsonb_each_text(receive.headers) h);
    if header_bytes > 65536 then
        raise exception using errcode = 'MP018', detail = 'event',
            message = format('the headers of the event have %s bytes; the limit is 65536', header_bytes);
    end if;
    if receive.emitted_at not between '0001-01-01 00:00:00+00' and '9999-12-30 00:00:00+00' then
        raise exception using errcode = 'MP018', detail = 'event', message = 'emitted_at must be a time from the year 1 to 9999-12-30';
    end if;
    refused := milepost.refuse_event_payload(receive.payload::text, milepost.document_bytes_limit());
    if refused is not null then
        raise exception using errcode = 'MP018', detail = 'event', message = 'the payload ' || refused;
    end if;

    -- For an event that is the next one, this statement is sufficient.
    insert into milepost.aggregate_checkpoint as c (consumer, aggregate_type, aggregate_id, last_seq, applied_at, last_event_id)
    values (receive.consumer, receive.aggregate_type, receive.aggregate_id, case when receive.aggregate_seq = 1 then 1 else 0 end,
            case when receive.aggregate_seq = 1 then clock_timestamp() end, case when receive.aggregate_seq = 1 then receive.event_id end)
    on conflict (consumer, aggregate_type, aggregate_id) do update
    set last_seq = receive.aggregate_seq, ready = c.parked + c.dead > 0, gives_up_at = null, applied_at = clock_timestamp(),
        last_event_id = receive.event_id
    where c.last_seq = receive.aggregate_seq - 1
    returning c.* into stands;
    is_new := found;
    if stands.last_seq = receive.aggregate_seq and not stands.ready then
        return query select 'apply', false;
        return;
    end if;

    if not is_new then
        -- The upsert has locked the row even if it did not update it.
        select c.* into stands from milepost.aggregate_checkpoint c
        where c.consumer = receive.consumer and c.aggregate_type = receive.aggregate_type and c.aggregate_id = receive.aggregate_id;
        if receive.aggregate_seq <= stands.last_seq then
            -- An event that the consumer skipped was not received before, and neither was one that was emitted after a later one was processed.
            -- The clocks of the two databases may differ by ten seconds.
            late := case
                when exists (select from milepost.inbox_dead d
                             where d.consumer = receive.consumer and d.aggregate_type = receive.aggregate_type
                               and d.aggregate_id = receive.aggregate_id and d.event_id is null
                               and d.aggregate_seq <= receive.aggregate_seq and d.seq_to >= receive.aggregate_seq)
                    then 'it arrived after its consumer had passed its sequence'
                when receive.aggregate_seq = stands.last_seq and stands.last_event_id = receive.event_id then null
                when receive.aggregate_seq = stands.last_seq and stands.last_event_id is not null
                  or receive.emitted_at > stands.applied_at + interval '10 seconds'
                    then 'another event with its sequence was processed before; perhaps its log was restored to an earlier time, or a clock is wrong' end;
            if late is not null then
                return query select milepost.receive_late(receive.consumer, receive.aggregate_type, receive.aggregate_id,
                    receive.aggregate_seq, receive.event_id, receive.event_type, receive.payload, receive.headers, receive.emitted_at, late), false;
                return;
            end if;
            perform milepost.note_duplicate(receive.consumer);
            return query select 'duplicate', false;
            return;
        end if;
    elsif stands.last_seq = receive.aggregate_seq then
        -- The event may also be among the kept ones, or another one with its sequence, which is kept for operators.
        insert into milepost.inbox_dead (consumer, aggregate_type, aggregate_id, aggregate_seq, seq_to, reason, why, event_id, event_type, headers,
                                         payload, emitted_at)
        select p.consumer, p.aggregate_type, p.aggregate_id, p.aggregate_seq, p.aggregate_seq, 'late',
               'another event with its sequence was processed', p.event_id, p.event_type, p.headers, p.payload, p.emitted_at
        from milepost.inbox_parked p
        where p.consumer = receive.consumer and p.aggregate_type = receive.aggregate_type and p.aggregate_id = receive.aggregate_id
          and p.aggregate_seq = receive.aggregate_seq and p.event_id <> receive.event_id
        on conflict do nothing;
        delete from milepost.inbox_parked p
        where p.consumer = receive.consumer and p.aggregate_type = receive.aggregate_type and p.aggregate_id = receive.aggregate_id
          and p.aggregate_seq = receive.aggregate_seq;
        get diagnostics parked_gone = row_count;
        update milepost.inbox_dead d set reason = 'late', why = 'another event with its sequence was processed'
        where d.consumer = receive.consumer and d.aggregate_type = receive.aggregate_type and d.aggregate_id = receive.aggregate_id
          and d.aggregate_seq = receive.aggregate_seq and d.reason = 'gap' and d.event_id <> receive.event_id;
        get diagnostics other_gone = row_count;
        delete from milepost.inbox_dead d
        where d.consumer = receive.consumer and d.aggregate_type = receive.aggregate_type and d.aggregate_id = receive.aggregate_id
          and d.aggregate_seq = receive.aggregate_seq and d.reason = 'gap' and d.event_id = receive.event_id;
        get diagnostics dead_gone = row_count;
        -- It is processed now, although it was kept because another one with its sequence waited.
        delete from milepost.inbox_dead d
        where d.consumer = receive.consumer and d.aggregate_type = receive.aggregate_type and d.aggregate_id = receive.aggregate_id
          and d.aggregate_seq = receive.aggregate_seq and d.reason = 'late' and d.event_id = receive.event_id;
        dead_gone := dead_gone + other_gone;
        if parked_gone + dead_gone > 0 then
            update milepost.aggregate_checkpoint c set parked = c.parked - parked_gone, dead = c.dead - dead_gone
            where c.consumer = receive.consumer and c.aggregate_type = receive.aggregate_type and c.aggregate_id = receive.aggregate_id;
        end if;
        return query select 'apply', true;
        return;
    end if;

    settings := milepost.settings_of(receive.consumer);
    if is_new and settings.begins_anywhere then
        update milepost.aggregate_checkpoint c
        set last_seq = receive.aggregate_seq, applied_at = clock_timestamp(), last_event_id = receive.event_id
        where c.consumer = receive.consumer and c.aggregate_type = receive.aggregate_type and c.aggregate_id = receive.aggregate_id;
        return query select 'apply', false;
        return;
    end if;
    waiting := (
        select p.event_id from milepost.inbox_parked p
        where p.consumer = receive.consumer and p.aggregate_type = receive.aggregate_type and p.aggregate_id = receive.aggregate_id
          and p.aggregate_seq = receive.aggregate_seq
        union all
        select d.event_id from milepost.inbox_dead d
        where d.consumer = receive.consumer and d.aggregate_type = receive.aggregate_type and d.aggregate_id = receive.aggregate_id
          and d.aggregate_seq = receive.aggregate_seq and d.reason = 'gap' and stands.dead > 0
        limit 1);
    if waiting = receive.event_id then
        return query select 'parked', stands.ready;
        return;
    elsif waiting is not null then
        return query select milepost.receive_late(receive.consumer, receive.aggregate_type, receive.aggregate_id, receive.aggregate_seq,
            receive.event_id, receive.event_type, receive.payload, receive.headers, receive.emitted_at, 'another event with its sequence waits'), false;
        return;
    end if;
    if exists (
        select from milepost.inbox_dead d
        where d.consumer = receive.consumer and d.aggregate_type = receive.aggregate_type and d.aggregate_id = receive.aggregate_id
          and d.aggregate_seq = receive.aggregate_seq and d.event_id = receive.event_id)
    then
        -- Operators decide about it.
        perform milepost.note_duplicate(receive.consumer);
        return query select 'duplicate', false;
        return;
    end if;
    insert into milepost.inbox_parked (consumer, aggregate_type, aggregate_id, aggregate_seq, event_id, event_type, headers, payload, emitted_at)
    values (receive.consumer, receive.aggregate_type, receive.aggregate_id, receive.aggregate_seq, receive.event_id, receive.event_type,
            nullif(receive.headers, '{}'), coalesce(receive.payload, '{}'), coalesce(receive.emitted_at, now()))
    on conflict do nothing;
    if found then
        update milepost.aggregate_checkpoint c
        set parked = c.parked + 1,
            gives_up_at = case when not c.ready
                then coalesce(c.gives_up_at, now() + settings.gap_wait_ms * interval '1 millisecond') end
        where c.consumer = receive.consumer and c.aggregate_type = receive.aggregate_type and c.aggregate_id = receive.aggregate_id
        returning c.* into stands;
        if stands.parked > settings.parked_max and not stands.ready then
            perform milepost.give_up_gap(receive.consumer, receive.aggregate_type, receive.aggregate_id,
                format('%s events waited for sequence %s', stands.parked, stands.last_seq + 1), stands.parked);
            select c.* into stands from milepost.aggregate_checkpoint c
            where c.consumer = receive.consumer and c.aggregate_type = receive.aggregate_type and c.aggregate_id = receive.aggregate_id;
        end if;
    end if;
    return query select 'parked', stands.ready;
end
$$;

-- Receives the kept event that follows the last one of an aggregate, in the caller's transaction. Process it, and call again
-- until there is no row.
create or replace function milepost.next_parked(consumer text, aggregate_type text, aggregate_id text)
returns table (event_id uuid, aggregate_seq bigint, event_type text, payload json, headers jsonb, emitted_at timestamptz)
language plpgsql security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
#variable_conflict use_column
declare
    stands milepost.aggregate_checkpoint;
begin
    perform milepost.check_consumer(next_parked.consumer);
    perform milepost.check_place(next_parked.aggregate_type, next_parked.aggregate_id, 1);
    select c.* into stands from milepost.aggregate_checkpoint c
    where c.consumer = next_parked.consumer and c.aggregate_type = next_parked.aggregate_type and c.aggregate_id = next_parked.aggregate_id
    for update;
    if not found then
        return;
    end if;
    if stands.parked > 0 then
        delete from milepost.inbox_parked p
        where p.consumer = next_parked.consumer and p.aggregate_type = next_parked.aggregate_type
          and p.aggregate_id = next_parked.aggregate_id and p.aggregate_seq = stands.last_seq + 1
        returning p.event_id, p.aggregate_seq, p.event_type, p.payload, p.headers, p.emitted_at
        into event_id, aggregate_seq, event_type, payload, headers, emitted_at;
        if found then
            return next;
            update milepost.aggregate_checkpoint c
            set last_seq = c.last_seq + 1, parked = c.parked - 1, ready = c.parked - 1 + c.dead > 0, gives_up_at = null,
                applied_at = clock_timestamp(), last_event_id = next_parked.event_id
            where c.consumer = next_parked.consumer and c.aggregate_type = next_parked.aggregate_type
              and c.aggregate_id = next_parked.aggregate_id;
            return;
        end if;
    end if;
    if stands.dead > 0 then
        delete from milepost.inbox_dead d
        where d.consumer = next_parked.consumer and d.aggregate_type = next_parked.aggregate_type
          and d.aggregate_id = next_parked.aggregate_id and d.aggregate_seq = stands.last_seq + 1 and d.event_id is not null
          and d.reason = 'gap'
        returning d.event_id, d.aggregate_seq, d.event_type, d.payload, d.headers, d.emitted_at
        into event_id, aggregate_seq, event_type, payload, headers, emitted_at;
        if found then
            return next;
            update milepost.aggregate_checkpoint c
            set last_seq = c.last_seq + 1, dead = c.dead - 1, ready = c.parked + c.dead - 1 > 0, gives_up_at = null,
                applied_at = clock_timestamp(), last_event_id = next_parked.event_id
            where c.consumer = next_parked.consumer and c.aggregate_type = next_parked.aggregate_type
              and c.aggregate_id = next_parked.aggregate_id;
            return;
        end if;
    end if;
    if stands.parked + stands.dead > 0 or stands.ready then
        perform milepost.look_again(next_parked.consumer, next_parked.aggregate_type, next_parked.aggregate_id);
    end if;
end
$$;

-- Sets the first sequence number of an aggregate that a consumer receives, in the caller's transaction; earlier events count
-- as duplicates. Never moves backwards; returns whether anything changed. Kept events may follow now: call next_parked.
create or replace function milepost.expect_from(consumer text, aggregate_type text, aggregate_id text, seq bigint) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
#variable_conflict use_column
declare
    parked_gone int;
    dead_gone int;
begin
    perform milepost.check_consumer(expect_from.consumer);
    perform milepost.check_place(expect_from.aggregate_type, expect_from.aggregate_id, expect_from.seq);
    insert into milepost.aggregate_checkpoint as c (consumer, aggregate_type, aggregate_id, last_seq)
    values (expect_from.consumer, expect_from.aggregate_type, expect_from.aggregate_id, expect_from.seq - 1)
    on conflict (consumer, aggregate_type, aggregate_id) do update
    set last_seq = excluded.last_seq, applied_at = null, last_event_id = null
    where c.last_seq < excluded.last_seq;
    if not found then
        perform milepost.confirm_replication();
        return false;
    end if;
    delete from milepost.inbox_parked p
    where p.consumer = expect_from.consumer and p.aggregate_type = expect_from.aggregate_type and p.aggregate_id = expect_from.aggregate_id
      and p.aggregate_seq < expect_from.seq;
    get diagnostics parked_gone = row_count;
    update milepost.inbox_dead d set reason = 'late', why = format('the consumer was set to begin at sequence %s', expect_from.seq)
    where d.consumer = expect_from.consumer and d.aggregate_type = expect_from.aggregate_type and d.aggregate_id = expect_from.aggregate_id
      and d.aggregate_seq < expect_from.seq and d.event_id is not null and d.reason = 'gap';
    get diagnostics dead_gone = row_count;
    update milepost.aggregate_checkpoint c set parked = c.parked - parked_gone, dead = c.dead - dead_gone
    where c.consumer = expect_from.consumer and c.aggregate_type = expect_from.aggregate_type and c.aggregate_id = expect_from.aggregate_id;
    perform milepost.look_again(expect_from.consumer, expect_from.aggregate_type, expect_from.aggregate_id);
    return true;
end
$$;

-- Returns aggregates of a consumer whose next event may be among the kept ones: receive it with next_parked.
create or replace function milepost.inbox_ready(consumer text, rows_max int default 100) returns table (aggregate_type text, aggregate_id text)
language sql stable security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
    select c.aggregate_type, c.aggregate_id from milepost.aggregate_checkpoint c
    where c.consumer = inbox_ready.consumer and c.ready
    order by c.aggregate_type, c.aggregate_id
    limit greatest(inbox_ready.rows_max, 0)
$$;

-- Ends the wait for missing events whose time limit has passed, of this consumer or of all, for at most rows_max events.
-- Skips aggregates that other transactions have locked. Returns the number of gaps, and of dead letters that resulted.
create or replace function milepost.give_up_gaps(consumer text default null, rows_max int default 500)
returns table (gaps bigint, letters bigint) language plpgsql security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
#variable_conflict use_column
declare
    gap milepost.aggregate_checkpoint;
begin
    gaps := 0;
    letters := 0;
    for gap in
        select c.* from milepost.aggregate_checkpoint c
        where c.gives_up_at <= now() and (give_up_gaps.consumer is null or c.consumer = give_up_gaps.consumer)
        order by c.gives_up_at
        limit 100
        for update skip locked
    loop
        exit when letters >= give_up_gaps.rows_max;
        letters := letters + milepost.give_up_gap(gap.consumer, gap.aggregate_type, gap.aggregate_id,
            format('sequence %s did not arrive within %s s', gap.last_seq + 1, trim_scale((milepost.settings_of(gap.consumer)).gap_wait_ms / 1000.0)),
            give_up_gaps.rows_max - letters);
        gaps := gaps + 1;
    end loop;
    return next;
end
$$;

-- Locks the aggregates of these dead letters, in order.
create or replace function milepost.lock_letters(letters bigint[]) returns void language sql set enable_seqscan = off as $$
    select from milepost.aggregate_checkpoint c
    where (c.consumer, c.aggregate_type, c.aggregate_id)
          in (select d.consumer, d.aggregate_type, d.aggregate_id from milepost.inbox_dead d where d.pos = any (letters))
    order by c.consumer, c.aggregate_type, c.aggregate_id
    for update
$$;

-- Returns the content of a dead letter for the audit log.
create or replace function milepost.audited_letter(letter milepost.inbox_dead) returns jsonb language sql immutable as $$
    select jsonb_build_object('letter', letter.pos, 'consumer', letter.consumer, 'aggregate_type', letter.aggregate_type,
        'aggregate_id', letter.aggregate_id, 'aggregate_seq', letter.aggregate_seq, 'reason', letter.reason, 'event_id', letter.event_id)
$$;

-- Makes the events of dead letters wait again for the missing one before them, as if they had just arrived; all or none.
-- Returns their number.
create or replace function milepost.retry_dead(letters bigint[], who text default session_user) returns bigint language plpgsql as $$
declare
    was jsonb[] := milepost.retry_letters(letters);
begin
    return milepost.note_letters(was, 'inbox.retry', retry_dead.who);
end
$$;

-- Records in the audit log what was done to dead letters, and by whom; null: by the role of the session. Returns their
-- number.
create or replace function milepost.note_letters(was jsonb[], what text, who text) returns bigint language plpgsql as $$
declare
    actor text := coalesce(nullif(note_letters.who, ''), session_user);
begin
    if octet_length(actor) > 200 or milepost.has_control(actor) or milepost.is_deceptive(actor) then
        raise exception using errcode = 'MP018', detail = 'settings', message = 'who must have at most 200 bytes and no control characters';
    end if;
    if cardinality(was) > 0 then
        insert into milepost.audit (who, what, detail)
        values (actor, note_letters.what, jsonb_build_object('before', to_jsonb(was)));
    else
        -- Another transaction may have deleted them.
        perform milepost.confirm_replication();
    end if;
    return cardinality(was);
end
$$;

-- Makes the events of dead letters wait again, without an audit entry, which the caller writes. Returns the dead letters.
create or replace function milepost.retry_letters(letters bigint[]) returns jsonb[] language plpgsql set enable_seqscan = off as $$
#variable_conflict use_column
declare
    asked bigint;
    letter milepost.inbox_dead;
    was jsonb[] := '{}';
begin
    perform milepost.lock_letters(retry_letters.letters);
    for asked in select distinct l.pos from unnest(retry_letters.letters) l(pos) order by l.pos loop
        select d.* into letter from milepost.inbox_dead d where d.pos = asked;
        if not found then
            raise exception using errcode = 'MP019', message = format('there is no dead letter %s', coalesce(asked::text, 'null')),
                detail = 'missing ' || coalesce(asked::text, 'null');
        elsif letter.reason <> 'gap' then
            raise exception using errcode = 'MP019', detail = 'past ' || asked,
                message = format('dead letter %s cannot be retried: another event has its sequence, or its consumer has passed it', asked),
                hint = 'apply the event manually, then drop the dead letter';
        end if;
        was := was || milepost.audited_letter(letter);
        delete from milepost.inbox_dead d where d.pos = letter.pos;
        insert into milepost.inbox_parked (consumer, aggregate_type, aggregate_id, aggregate_seq, event_id, event_type, headers, payload,
                                           emitted_at)
        values (letter.consumer, letter.aggregate_type, letter.aggregate_id, letter.aggregate_seq, letter.event_id, letter.event_type,
                letter.headers, letter.payload, letter.emitted_at);
        update milepost.aggregate_checkpoint c set parked = c.parked + 1, dead = c.dead - 1
        where c.consumer = letter.consumer and c.aggregate_type = letter.aggregate_type and c.aggregate_id = letter.aggregate_id;
        perform milepost.look_again(letter.consumer, letter.aggregate_type, letter.aggregate_id);
    end loop;
    return was;
end
$$;

-- Deletes dead letters. Returns how many there were.
create or replace function milepost.drop_dead(letters bigint[], who text default session_user) returns bigint language plpgsql as $$
declare
    was jsonb[] := milepost.drop_letters(letters);
begin
    return milepost.note_letters(was, 'inbox.drop', drop_dead.who);
end
$$;

-- Deletes dead letters without an audit entry, which the caller writes. Returns them.
create or replace function milepost.drop_letters(letters bigint[]) returns jsonb[] language plpgsql set enable_seqscan = off as $$
#variable_conflict use_column
declare
    letter milepost.inbox_dead;
    dropped jsonb[] := '{}';
begin
    perform milepost.lock_letters(drop_letters.letters);
    for letter in delete from milepost.inbox_dead d where d.pos = any (drop_letters.letters) returning d.* loop
        dropped := dropped || milepost.audited_letter(letter);
        if letter.reason = 'gap' then
            -- The oldest other event with its sequence can follow now.
            update milepost.inbox_dead d set reason = 'gap', why = 'the event that waited with its sequence was dropped'
            where d.pos = (
                select min(l.pos) from milepost.inbox_dead l
                where l.consumer = letter.consumer and l.aggregate_type = letter.aggregate_type and l.aggregate_id = letter.aggregate_id
                  and l.aggregate_seq = letter.aggregate_seq and l.event_id is not null and l.reason = 'late');
            continue when found;
            update milepost.aggregate_checkpoint c set dead = c.dead - 1
            where c.consumer = letter.consumer and c.aggregate_type = letter.aggregate_type and c.aggregate_id = letter.aggregate_id;
            perform milepost.look_again(letter.consumer, letter.aggregate_type, letter.aggregate_id);
        end if;
    end loop;
    return dropped;
end
$$;

-- Run with the rights of their owner, so that an application needs no rights on tables; executable only by roles that are
-- granted them.
revoke execute on function milepost.put_consumer, milepost.once, milepost.receive, milepost.next_parked, milepost.expect_from,
    milepost.inbox_ready, milepost.give_up_gaps from public;
