-- Up to $1 running jobs that were asked to stop and whose grace time has passed. Takes the shared locks for settling their
-- batches, before their rows are locked: see settle.sql for the order of locks. Only the index live_stop has this order;
-- without it, a plan made while the table was empty would walk the primary key.
with overdue as materialized (
    select id from milepost.live where stop_at < now() order by stop_at limit $1
),
joined as materialized (
    select milepost.join_settling(array(
        select distinct j.batch_id from overdue o join milepost.job j on j.id = o.id where j.batch_id is not null))
)
select o.id from overdue o, joined
