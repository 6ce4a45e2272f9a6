-- Ends runs of worker $6 (null: of any) that stopped on request: $1 jobs, $2 run tokens, $3 verbs (cancel or abort; null: the requested one, if there is
-- one), $4 error codes and $5 messages of attempts that failed in the meantime. An abort does not count as an attempt unless
-- the attempt failed. Returns the jobs whose end was accepted.
with input as materialized (
    select * from unnest($1::uuid[], $2::int[], $3::text[], $4::text[], $5::text[])
        as i(id, token, verb, error_code, error_message)
),
gone as (
    delete from milepost.live l
    using input i
    where l.id = i.id and l.token = i.token and coalesce(l.worker_id = $6, true) and l.state = 'running'
      and milepost.verb_that_stops(l.stop_verb, coalesce(i.verb::milepost.verb, l.stop_verb)) = 'cancel'
    returning l.id, l.token, l.attempt, l.max_attempts, l.worker_id, l.started_at, l.stop_note, i.error_code, i.error_message
),
kept as (
    insert into milepost.ended (id, ended_at, started_at, token, attempt, max_attempts, state)
    select id, now(), started_at, token, attempt, max_attempts, 'canceled' from gone
),
-- Reads the values before the update.
aborted as materialized (
    select l.id, l.stop_note, l.worker_id, i.error_code, i.error_message
    from input i
    join milepost.live l on l.id = i.id
    where l.token = i.token and coalesce(l.worker_id = $6, true) and l.state = 'running' and milepost.verb_that_stops(l.stop_verb, coalesce(i.verb::milepost.verb, l.stop_verb)) = 'abort'
    for update of l
),
stayed as (
    update milepost.live l
    set state = 'aborted', attempt = l.attempt - (a.error_code is null)::int, worker_id = null, claim_id = null, stop_verb = null, stop_at = null, stop_note = null
    from aborted a
    where l.id = a.id
    returning l.id, l.token, l.attempt + (a.error_code is null)::int as attempt, a.worker_id, a.stop_note, a.error_code, a.error_message
),
logged as (
    insert into milepost.history
        (job_id, token, attempt, worker_id, verb, from_state, to_state, error_code, error_message, note)
    select id, token, attempt, worker_id, 'cancel'::milepost.verb, 'running'::milepost.job_state,
           'canceled'::milepost.job_state, error_code, error_message, stop_note
    from gone
    union all
    select id, token, attempt, worker_id, 'abort', 'running', 'aborted', error_code, error_message, stop_note
    from stayed
)
select id from gone union all select id from stayed
