-- Releases slots of jobs that do not hold them, and assigns them to waiting jobs. $1 limit
with idle as materialized (
    select s.job_id from milepost.group_slot s
    left join milepost.live l on l.id = s.job_id
    where l.id is null or l.group_key is distinct from s.group_key or l.state not in ('pending', 'running', 'retry_wait')
    order by s.group_key limit $1
),
freed as materialized (
    select milepost.free_groups(array(select job_id from idle)) as released
)
select idle.job_id::text from idle, freed
