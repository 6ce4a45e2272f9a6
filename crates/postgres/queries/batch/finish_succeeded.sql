-- Ends runs of tasks of worker $4 that succeeded, as finish_succeeded.sql does, and continues their batches: $1 jobs, $2 run tokens, $3
-- results (JSON text or null), parallel arrays. Returns the jobs whose end was accepted, and whether work is left for their
-- batches.
with input as materialized (
    select i.id, i.token, i.result, j.batch_id, j.task
    from unnest($1::uuid[], $2::int[], $3::text[]) as i(id, token, result)
    join milepost.job j on j.id = i.id
),
-- Before any row is locked: an operator's action takes this lock first and then locks rows of jobs.
joined as materialized (
    select milepost.join_settling(array(select distinct batch_id from input where batch_id is not null))
),
gone as (
    delete from milepost.live l
    using input i
    where l.id = i.id and l.token = i.token and coalesce(l.worker_id, $4) = $4 and l.state = 'running' and (select count(*) from joined) > 0
    returning l.id, l.token, l.attempt, l.max_attempts, l.worker_id, l.started_at, i.result, i.batch_id, i.task
),
kept as (
    insert into milepost.ended (id, ended_at, started_at, token, attempt, max_attempts, state, result)
    select id, now(), started_at, token, attempt, max_attempts, 'succeeded', result::jsonb from gone
),
logged as (
    insert into milepost.history (job_id, token, attempt, worker_id, verb, from_state, to_state)
    select id, token, attempt, worker_id, 'succeed', 'running', 'succeeded' from gone
    returning 1
),
-- A job that was running is the current one of its task. The history contains the consequences after their cause.
tasks as materialized (
    select array_agg(g.batch_id) as batches, array_agg(g.task) as tasks
    from gone g
    where g.batch_id is not null and (select count(*) from logged) > 0
),
settled as materialized (
    select s.due_made, s.spread_left
    from tasks t
    cross join lateral milepost.settle(t.batches, t.tasks, array_fill('succeeded'::milepost.task_state, array[cardinality(t.tasks)])) s
    where t.tasks is not null
)
select g.id, (select due_made from settled) as due_made, (select spread_left from settled) as spread_left from gone g
