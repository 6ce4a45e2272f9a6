-- Changes of the payload and the options of existing jobs, by operators and by enqueues with the same key. Not public: the functions
-- of duplicates.sql and the library call these.

-- Applies new options to a job that does not run and whose row in live the caller has locked, with an entry in its history. start: the new
-- earliest start of a job that waits. Nulls: as before.
-- A claim that began before cannot take the job: it takes a row only in the version that its snapshot shows, and this changes the row.
create or replace function milepost.apply_edit(
    job uuid, start timestamptz, new_priority int, new_attempts int, note text
) returns milepost.job_state language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    l milepost.live;
    waits boolean;
begin
    select * into l from milepost.live r where r.id = apply_edit.job;
    waits := l.state in ('pending', 'blocked', 'retry_wait');
    update milepost.live r
    set priority = coalesce(new_priority, l.priority),
        max_attempts = case when new_attempts is null then l.max_attempts else greatest(new_attempts, l.attempt + waits::int) end,
        -- In another lane, probes may start after the old time.
        ready_at = case when l.ready_at is null then null
                        when start is null and new_priority <> l.priority then greatest(l.ready_at, now())
                        else coalesce(start, l.ready_at) end,
        due_at = case when l.due_at is not null then coalesce(start, l.due_at) end,
        timed = case when l.due_at is null or start is null then l.timed when start > now() then true end,
        start_reserved = case when start > now() then null else l.start_reserved end
    where r.id = apply_edit.job;
    if l.start_reserved and start > now() then
        -- Its token is counted as used, and other jobs of the group do not wait for its start.
        insert into milepost.group_note (group_key, starts) values (l.group_key, 0);
    end if;
    insert into milepost.history (job_id, token, attempt, verb, from_state, to_state, ready_at, note)
    values (apply_edit.job, l.token, l.attempt, 'edit', l.state, l.state, case when start > now() then start end, apply_edit.note);
    if l.state = 'blocked' and l.group_key is not null and start <= now() then
        perform milepost.hand_over(array[l.group_key], true);
        l.state := (select r.state from milepost.live r where r.id = apply_edit.job);
    end if;
    if waits then
        perform milepost.wake();
    end if;
    return l.state;
end
$$;

-- Edits a job that waits, has failed or was aborted, and returns its state. Nulls: as before; run_at and delay_ms: its earliest start.
-- SQLSTATEs as for change; MP001 if the edit does not fit the job.
create or replace function milepost.edit_job(
    job uuid, new_payload jsonb, new_priority int, run_at timestamptz, delay_ms bigint, new_attempts int, note text
) returns milepost.job_state language plpgsql as $$
declare
    now_state milepost.job_state;
    start timestamptz := coalesce(case when run_at is not null then greatest(run_at, now()) end, now() + delay_ms * interval '1 millisecond');
begin
    perform milepost.check_reason(note);
    loop
        select l.state into now_state from milepost.live l where l.id = edit_job.job for update;
        exit when found;
        select e.state into now_state from milepost.ended e where e.id = edit_job.job;
        exit when found;
        perform from milepost.job j where j.id = edit_job.job;
        if not found then
            raise exception using errcode = 'MP002', message = format('there is no job %s', job);
        end if;
    end loop;
    if not exists (select from milepost.transition t where t.from_state = now_state and t.verb = 'edit') then
        raise exception using errcode = 'MP003',
            message = format('job %s: a job that is %s cannot edit', job, now_state), detail = now_state::text;
    end if;
    if start is not null and now_state in ('failed', 'aborted') then
        raise exception using errcode = 'MP001', detail = now_state::text,
            message = format('a job that is %s has no start; give a delay when you retry it', now_state);
    end if;
    if start > now() + milepost.wait_ms_max() * interval '1 millisecond' then
        raise exception using errcode = 'MP001', message = 'run_at must be a time from 1970 to a hundred years from now';
    end if;
    if new_payload is not null and exists (select from milepost.bulk b where b.job_id = edit_job.job) then
        raise exception using errcode = 'MP001', detail = 'bulk',
            message = 'the payload of a run of a bulk job cannot be edited; cancel it, and start another run';
    end if;
    update milepost.job j
    set payload = coalesce(new_payload, j.payload),
        priority = coalesce(new_priority, j.priority),
        max_attempts = coalesce(new_attempts, j.max_attempts)
    where j.id = edit_job.job;
    return milepost.apply_edit(job, start, new_priority, new_attempts, note);
end
$$;
