-- Locks the rows of jobs in the order of their ids, as every statement does that locks several. $1 jobs
select from milepost.live where id = any ($1::uuid[]) order by id for update
