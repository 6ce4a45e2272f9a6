-- Deletes from live the jobs that have ended according to their history. $1 limit
delete from milepost.live
where id in (
    select l.id from milepost.live l join milepost.ended e on e.id = l.id
    where e.state::text = (select h.to_state::text from milepost.history h where h.job_id = l.id order by h.pos desc limit 1)
    order by l.id limit $1
)
returning id::text
