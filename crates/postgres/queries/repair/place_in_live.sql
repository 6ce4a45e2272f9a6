-- Inserts jobs that are neither live nor ended into live, if their complete history shows that they are live. $1 limit
with lost as (
    select j.*, (select max(h.pos) from milepost.history h where h.job_id = j.id) as pos
    from milepost.job j
    where not exists (select from milepost.live l where l.id = j.id) and not exists (select from milepost.ended e where e.id = j.id)
      and exists (select from milepost.history h where h.job_id = j.id)
      and not exists (select from (
          select h.verb, h.from_state, h.token, lag(h.to_state) over (order by h.pos) as before,
                 coalesce(lag(h.token) over (order by h.pos), 0) as token_before
          from milepost.history h where h.job_id = j.id
      ) c where c.from_state is distinct from c.before or (c.before is null) <> (c.verb = 'create')
            or case when c.verb = 'claim' then c.token <= c.token_before else c.token <> c.token_before end)
)
insert into milepost.live (id, kind, queue, priority, group_key, state, ready_at, due_at, timed, started_at, token, attempt, max_attempts, worker_id)
select j.id, j.kind, j.queue, j.priority, j.group_key, h.to_state,
       case when h.to_state in ('pending', 'retry_wait') then coalesce(h.ready_at, now()) end,
       case when h.to_state = 'blocked' then coalesce(h.ready_at, now()) end,
       case when h.to_state = 'blocked' and h.ready_at > now() then true end,
       case when h.to_state = 'running' then h.at end,
       h.token, h.attempt - case when h.verb = 'yield' or h.verb = 'abort' and h.from_state = 'running' and h.error_code is null then 1 else 0 end,
           greatest(j.max_attempts, h.attempt, coalesce((
               select max(a.attempt + case when a.verb = 'resume' then 1 else j.max_attempts end) from milepost.history a
               where a.job_id = j.id and (a.verb in ('rerun', 'resume') or (a.verb = 'retry_now' and a.from_state = 'failed'))
           ), 0)),
       case when h.to_state = 'running' then h.worker_id end
from lost j
join milepost.history h on h.pos = j.pos and h.job_id = j.id
where h.to_state not in ('succeeded', 'canceled', 'skipped')
order by j.id
limit $1
on conflict do nothing
returning id::text
