-- Ends runs of worker $4 that succeeded: $1 jobs, $2 run tokens, $3 results (JSON text or null), parallel arrays. Returns the jobs
-- whose end was accepted, and whether each has a group; the others are fenced or had ended before.
-- `coalesce` keeps the planner from the index of runs by worker.
with input as materialized (
    select * from unnest($1::uuid[], $2::int[], $3::text[]) as i(id, token, result)
),
gone as (
    delete from milepost.live l
    using input i
    where l.id = i.id and l.token = i.token and coalesce(l.worker_id, $4) = $4 and l.state = 'running'
    returning l.id, l.token, l.attempt, l.max_attempts, l.worker_id, l.started_at, l.group_key, i.result
),
kept as (
    insert into milepost.ended (id, ended_at, started_at, token, attempt, max_attempts, state, result)
    select id, now(), started_at, token, attempt, max_attempts, 'succeeded', result::jsonb from gone
),
logged as (
    insert into milepost.history (job_id, token, attempt, worker_id, verb, from_state, to_state)
    select id, token, attempt, worker_id, 'succeed', 'running', 'succeeded' from gone
)
select id, group_key is not null as grouped from gone
