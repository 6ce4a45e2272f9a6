-- Ends runs that stopped because they were asked to: $1 jobs, $2 run tokens, $3 verbs (cancel or abort).
-- Answers the jobs whose end was accepted.
with input as materialized (
    select * from unnest($1::uuid[], $2::int[], $3::text[]) as i(id, token, verb)
),
gone as (
    delete from milepost.live l
    using input i
    where l.id = i.id and l.token = i.token and l.state = 'running' and i.verb = 'cancel'
    returning l.id, l.token, l.attempt, l.max_attempts, l.worker_id, l.started_at
),
kept as (
    insert into milepost.ended (id, ended_at, started_at, token, attempt, max_attempts, state)
    select id, now(), started_at, token, attempt, max_attempts, 'canceled' from gone
),
stayed as (
    update milepost.live l
    set state = 'aborted', worker_id = null, claim_id = null, stop_verb = null, stop_at = null
    from input i
    where l.id = i.id and l.token = i.token and l.state = 'running' and i.verb = 'abort'
    returning l.id, l.token, l.attempt
),
logged as (
    insert into milepost.history (job_id, token, attempt, worker_id, verb, from_state, to_state)
    select id, token, attempt, worker_id, 'cancel'::milepost.verb, 'running', 'canceled'::milepost.job_state from gone
    union all
    select id, token, attempt, null, 'abort', 'running', 'aborted' from stayed
)
select id from gone union all select id from stayed
