-- Stores progress and checkpoints of runs: $1 jobs, $2 run tokens, $3 done, $4 totals, $5 messages, $6 checkpoints (JSON
-- text or null: unchanged). Returns the jobs whose report was accepted.
with input as materialized (
    select * from unnest($1::uuid[], $2::int[], $3::bigint[], $4::bigint[], $5::text[], $6::text[])
        as i(id, token, done, total, message, checkpoint)
),
held as materialized (
    -- Locked, so that a job is not rescued between this check and the commit.
    select i.* from input i join milepost.live l on l.id = i.id
    where l.token = i.token and l.state = 'running'
    for share of l
)
insert into milepost.progress as p (job_id, done, total, message, checkpoint, updated_at)
select id, done, total, message, checkpoint::jsonb, now() from held
on conflict (job_id) do update
set done = coalesce(excluded.done, p.done),
    total = case when excluded.done is null then p.total else excluded.total end,
    message = case when excluded.done is null then p.message else excluded.message end,
    checkpoint = coalesce(excluded.checkpoint, p.checkpoint),
    updated_at = now()
returning job_id
