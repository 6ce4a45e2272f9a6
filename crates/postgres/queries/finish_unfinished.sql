-- Takes back runs that did not finish: $1 jobs, $2 run tokens, $3 verbs (retry, fail or yield), $4 delays in ms, $5 error
-- codes, $6 error messages, $7 notes, $8 the worker. A yield does not count as an attempt. Runs that were asked to stop are
-- left alone: they end as requested. Returns the jobs whose end was accepted.
with input as materialized (
    select * from unnest($1::uuid[], $2::int[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[])
        as i(id, token, verb, delay_ms, error_code, error_message, note)
),
stayed as (
    update milepost.live l
    set state = case i.verb when 'retry' then 'retry_wait' when 'fail' then 'failed' else 'pending' end::milepost.job_state,
        ready_at = case when i.verb <> 'fail' then now() + i.delay_ms * interval '1 millisecond' end,
        attempt = l.attempt - case when i.verb = 'yield' then 1 else 0 end,
        failed_at = case when i.verb = 'fail' then now() end,
        worker_id = null, claim_id = null
    from input i
    where l.id = i.id and l.token = i.token and coalesce(l.worker_id, $8) = $8 and l.state = 'running' and l.stop_verb is null
    returning l.id, l.token, l.attempt, l.state, l.ready_at, l.group_key, i.verb, i.error_code, i.error_message, i.note
),
logged as (
    insert into milepost.history
        (job_id, token, attempt, worker_id, verb, from_state, to_state, ready_at, error_code, error_message, note)
    select id, token, attempt + case when verb = 'yield' then 1 else 0 end, $8::int, verb::milepost.verb, 'running', state,
           ready_at, error_code, error_message, note
    from stayed
),
noted as (
    -- If the group has a rate: the job will start once more.
    insert into milepost.group_note (group_key, starts)
    select group_key, 1 from stayed
    where group_key is not null and verb <> 'fail'
      and exists (select from milepost.limit_of(group_key) l where l.per_second is not null)
),
woken as (
    select milepost.wake() from stayed where ready_at <= now() limit 1
)
select id, (select count(*) from woken) as woken from stayed
