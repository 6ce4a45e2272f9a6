-- Raises tokens of rows of ended that are lower than in their history. $1 limit
update milepost.ended set token = (select max(h.token) from milepost.history h where h.job_id = milepost.ended.id)
where id in (
    select s.id from milepost.ended s
    where s.token < (select max(h.token) from milepost.history h where h.job_id = s.id)
    order by s.id limit $1
)
returning id::text
