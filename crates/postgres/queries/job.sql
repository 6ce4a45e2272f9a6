-- All details of job $1, except its history.
select j.id, j.kind, j.queue, coalesce(l.state, e.state)::text as state, j.priority,
       coalesce(l.attempt, e.attempt) as attempt, coalesce(l.max_attempts, e.max_attempts) as max_attempts, j.key,
       j.group_key, j.created_at, j.nominal_at, l.ready_at, coalesce(l.started_at, e.started_at) as started_at, e.ended_at,
       l.worker_id, coalesce(l.token, e.token) as token,
       j.payload::text as payload, e.result::text as result, p.done, p.total, p.message, p.checkpoint::text as checkpoint,
       j.traceparent, w.event_id as started_by, w.subscription, l.stop_verb is not null as stop_requested, l.due_at,
       coalesce(l.ready_at, l.due_at) > now() as in_future,
       (select s.job_id from milepost.group_slot s where s.group_key = j.group_key order by s.slot limit 1) as group_holder,
       (select count(*) from milepost.group_slot s where s.group_key = j.group_key) as group_taken,
       (select case when g.slots is null
                      or (select count(*) from milepost.group_slot s where s.group_key = j.group_key) < g.slots
               then greatest(now(), milepost.opens_at(milepost.full_without_reserved(b, g.per_second), g.per_second, g.burst, g.portion)) end
        from milepost.limit_of(j.group_key) g
        left join milepost.group_bucket b on b.group_key = j.group_key
        where g.per_second is not null) as group_opens_at,
       (select b.reserved from milepost.limit_of(j.group_key) g join milepost.group_bucket b on b.group_key = j.group_key
        where b.reserved + g.portion > g.burst) as group_reserved,
       (select milepost.opens_at(k.full_at, k.per_second, k.burst, k.portion) from milepost.kind_limit k
        where k.kind = j.kind and milepost.tokens(k.full_at, k.per_second, k.burst) < k.portion) as kind_opens_at,
       exists (select from milepost.queue q where q.name = j.queue and q.paused_at is not null) as paused,
       exists (select from milepost.worker w where w.ended_at is null and w.lease_expires_at > now()
               and j.queue = any(w.queues) and j.kind = any(w.kinds)) as served
from milepost.job j
left join lateral (
    select w.event_id, w.subscription from milepost.event_work w where w.work_id = j.id and w.work <> 'signal' order by w.started_at, w.event_id limit 1
) w on true
left join milepost.live l on l.id = j.id
left join milepost.ended e on e.id = j.id
left join milepost.progress p on p.job_id = j.id
where j.id = $1
