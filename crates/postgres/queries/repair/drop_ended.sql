-- Deletes from ended the jobs that are live according to their history. $1 limit
delete from milepost.ended
where id in (
    select l.id from milepost.live l join milepost.ended e on e.id = l.id
    where l.state::text = (select h.to_state::text from milepost.history h where h.job_id = l.id order by h.pos desc limit 1)
    order by l.id limit $1
)
returning id::text
