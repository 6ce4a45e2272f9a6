-- Locks the rows of these jobs in the order of their ids, as everybody does who takes several. $1 jobs
select from milepost.live where id = any ($1::uuid[]) order by id for update
