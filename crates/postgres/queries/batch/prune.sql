-- Deletes tasks and history of batches that ended more than $1 ms ago, at most $2 rows of each, and then the batches. Child
-- batches are deleted after their parents.
with over as materialized (
    select b.id from milepost.batch b
    where b.ended_at < now() - $1 * interval '1 millisecond'
      and not exists (select from milepost.batch p where p.id = b.parent_id)
    order by b.ended_at limit 100
    for update skip locked
),
tasks as (
    delete from milepost.batch_task
    where ctid = any (array(select t.ctid from over o join milepost.batch_task t on t.batch_id = o.id limit $2))
    returning batch_id
),
entries as (
    delete from milepost.batch_history
    where ctid = any (array(select h.ctid from over o join milepost.batch_history h on h.batch_id = o.id limit $2))
    returning batch_id
),
waits as (
    delete from milepost.batch_wait
    where ctid = any (array(select w.ctid from over o join milepost.batch_wait w on w.batch_id = o.id limit $2))
    returning batch_id
),
signals as (
    delete from milepost.batch_signal
    where ctid = any (array(select s.ctid from over o join milepost.batch_signal s on s.batch_id = o.id limit $2))
    returning batch_id
),
inputs as (
    delete from milepost.batch_input i using over o where i.batch_id = o.id
),
gone as (
    -- Batches of which nothing is left.
    delete from milepost.batch b using over o
    where b.id = o.id
      and not exists (select from milepost.batch_task t where t.batch_id = o.id)
      and not exists (select from milepost.batch_history h where h.batch_id = o.id)
      and not exists (select from milepost.batch_wait w where w.batch_id = o.id)
      and not exists (select from milepost.batch_signal s where s.batch_id = o.id)
    returning b.id, b.dag
),
heads as (
    delete from milepost.aggregate a using gone g
    where a.aggregate_type = 'milepost.batch.' || g.dag and a.aggregate_id = g.id::text
    returning 1
)
select (select count(*) from tasks) + (select count(*) from entries) + (select count(*) from waits) + (select count(*) from signals)
        + (select count(*) from gone) + (select count(*) from heads)
