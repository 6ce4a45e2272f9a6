-- Lets jobs that wait start, and takes the time to start at from those that do not wait. $1 at most
update milepost.live set ready_at = case when state in ('pending', 'retry_wait') then now() end
where id in (
    select l.id from milepost.live l
    where (l.state in ('pending', 'retry_wait')) <> (l.ready_at is not null)
    order by l.id limit $1
)
returning id::text
