-- Locks up to $1 running jobs that were asked to stop and whose grace time is over. Only live_stop has their
-- order; a plan made while the table was empty would else walk the primary key.
with overdue as materialized (
    select id from milepost.live where stop_at < now() order by stop_at limit $1
)
-- A scalar subquery for task: an exists could be planned as a hash of all jobs, which from PostgreSQL 18 on no setting prevents.
select l.id, l.token, l.stop_verb::text as verb, l.group_key is not null as grouped,
       coalesce((select j.batch_id is not null from milepost.job j where j.id = l.id), false) as task
from milepost.live l
where l.id = any (array(select id from overdue)) and l.state = 'running' and l.stop_at < now()
order by l.id
for update skip locked
