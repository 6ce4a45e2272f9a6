-- Tasks of batch $1 by number: $2 states (null: all), $3 numbers (null: all), $4 after this one, $5 limit.
select t.task, coalesce(k.key, t.task::text) as key, t.state::text as state, t.generation, t.pre_cnt, t.job_id, t.child_id,
       coalesce(l.state, e.state)::text as job_state, coalesce(l.attempt, e.attempt) as attempt,
       coalesce(j.created_at, c.created_at, w.since) as released_at,
       coalesce(l.started_at, e.started_at, c.created_at, w.since) as started_at,
       coalesce(l.failed_at, e.ended_at, c.ended_at, case when t.job_id is null and t.state in ('skipped', 'canceled', 'succeeded', 'failed') then h.at end) as ended_at,
       p.done, p.total,
       case when t.state in ('failed', 'active', 'aborted') then
           coalesce(x.words, case when t.state = 'failed' then coalesce(h.note, 'batch ' || t.child_id || ' has failed') end)
       end as error,
       case when t.state in ('active', 'aborted') then w.since end as wait_since, w.until as wait_until, w.signal as wait_signal,
       w.on_timeout::text as on_timeout, case when t.state in ('active', 'aborted') and w.since is not null then (k.spec -> 'wait')::text end as wait_spec
from milepost.batch_task t
join milepost.batch b on b.id = t.batch_id
left join lateral milepost.dag_task_of(b.version_id, t.task) k on b.items_of is null
left join milepost.job j on j.id = t.job_id
left join milepost.live l on l.id = t.job_id
left join milepost.ended e on e.id = t.job_id
left join milepost.batch c on c.id = t.child_id
left join milepost.progress p on p.job_id = t.job_id
left join milepost.batch_wait w on t.job_id is null and t.child_id is null and w.batch_id = t.batch_id and w.task = t.task
left join lateral (
    select concat_ws(': ', h.error_code, h.error_message) as words
    from milepost.history h where h.job_id = t.job_id and h.error_code is not null and t.state in ('failed', 'active', 'aborted') order by h.pos desc limit 1
) x on true
left join lateral (
    select h.at, h.note from milepost.batch_history h
    where h.batch_id = t.batch_id and h.task = t.task and t.job_id is null and t.state in ('skipped', 'canceled', 'succeeded', 'failed')
    order by h.pos desc limit 1
) h on true
where t.batch_id = $1
  and ($2::text[] is null or t.state = any ($2::text[]::milepost.task_state[]))
  and ($3::int[] is null or t.task = any ($3))
  and ($4::int is null or t.task > $4)
order by t.task
limit $5
