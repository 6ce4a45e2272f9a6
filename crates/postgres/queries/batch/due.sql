-- Locks due tasks of batches that are not stopped: of $1 (null: of all), at most $2; only the tasks $3, aligned with $1, unless that is
-- null. Answers what they do. Batches that an operator changes
-- at the moment are passed over: the right to settle comes before tasks in the order of locks (settle.sql), and nobody waits for it here.
select a.id as batch_id, t.task, d.spec::text as spec, i.input::text as input,
       case when a.items_of is not null then (select (l.input -> t.task)::text from milepost.batch_input l where l.batch_id = a.id) end as item, cardinality(d.reads) > 0 as reads,
       case when d.spec ? 'dag' then (
           select v.input_schema::text from milepost.dag g join milepost.dag_version v on v.id = g.latest where g.name = d.spec ->> 'dag'
       ) end as schema,
       a.nominal_at, a.nominal_zone
from milepost.batch a
join milepost.batch_input i on i.batch_id = case when a.items_of is null then a.id else a.parent_id end
cross join lateral (
    select task from milepost.batch_task
    where batch_id = a.id and is_due
      and ($3::int[] is null or (batch_id, task) in (select u.batch, u.task from unnest($1::uuid[], $3::int[]) u(batch, task)))
    order by task limit $2
    for update skip locked
) t
cross join lateral milepost.dag_task_of(a.version_id, coalesce(a.items_of, t.task)) d
where a.due > 0 and a.stop is null and pg_try_advisory_xact_lock_shared(19797, milepost.settling_bucket(a.id))
  and ($1::uuid[] is null or a.id = any ($1))
order by a.id, t.task
limit $2
