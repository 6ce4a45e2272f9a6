-- Locks due tasks of batches that are not stopped: of batches $1 (null: all), at most $2, of one batch at most half of
-- these; only the tasks $3, parallel to $1, unless that is null. Batches are taken until their inputs and lists have $4 bytes. Data that can
-- be large is returned once: the input and the list in the first row of a batch, a definition in the first row with its `spec_task`, the
-- schema in the first row whose definition names its DAG. The order of batches is random, so that a batch with many due tasks does not keep
-- others waiting. Batches that an operator is changing are skipped: in the order of locks (settle.sql), the right to settle precedes tasks,
-- and this statement does not wait for it.
select a.id as batch_id, t.task, coalesce(a.items_of, t.task) as spec_task,
       case when row_number() over (partition by a.turn, a.id, coalesce(a.items_of, t.task) order by t.task) = 1 then d.spec::text end as spec,
       cardinality(d.reads) > 0 as reads, a.items_of is not null as is_item,
       case when row_number() over of_batch = 1 then a.input::text end as input,
       case when row_number() over of_batch = 1 then a.list::text end as list,
       d.spec ->> 'dag' as dag,
       case when d.spec ? 'dag' and row_number() over (partition by d.spec ->> 'dag' order by a.turn, a.id, t.task) = 1 then (
           select v.input_schema::text from milepost.dag g join milepost.dag_version v on v.id = g.latest where g.name = d.spec ->> 'dag'
       ) end as schema,
       a.nominal_at, a.nominal_zone
from (
    select b.*, i.input, l.input as list,
           sum(octet_length(i.input::text) + coalesce(octet_length(l.input::text), 0))
               over (order by b.turn, b.id rows between unbounded preceding and 1 preceding) as bytes_before
    from (
        select id, version_id, parent_id, items_of, nominal_at, nominal_zone, random() as turn
        from milepost.batch
        where due > 0 and stop is null and ($1::uuid[] is null or id = any ($1))
        order by turn limit 100
    ) b
    join milepost.batch_input i on i.batch_id = case when b.items_of is null then b.id else b.parent_id end
    left join milepost.batch_input l on b.items_of is not null and l.batch_id = b.id
) a
cross join lateral (
    select task from milepost.batch_task
    where batch_id = a.id and is_due
      and ($3::int[] is null or (batch_id, task) in (select u.batch, u.task from unnest($1::uuid[], $3::int[]) u(batch, task)))
    order by task limit ($2 + 1) / 2
    for update skip locked
) t
cross join lateral milepost.dag_task_of(a.version_id, coalesce(a.items_of, t.task)) d
where coalesce(a.bytes_before, 0) < $4 and pg_try_advisory_xact_lock_shared(19797, milepost.settling_bucket(a.id))
window of_batch as (partition by a.turn, a.id order by t.task)
order by a.turn, a.id, t.task
limit $2
