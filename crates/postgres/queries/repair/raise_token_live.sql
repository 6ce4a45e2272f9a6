-- Raises tokens of rows of live that are lower than in their history, unless the job runs. $1 limit
update milepost.live set token = (select max(h.token) from milepost.history h where h.job_id = milepost.live.id)
where id in (
    select s.id from milepost.live s
    where s.token < (select max(h.token) from milepost.history h where h.job_id = s.id) and s.state <> 'running'
    order by s.id limit $1
)
returning id::text
