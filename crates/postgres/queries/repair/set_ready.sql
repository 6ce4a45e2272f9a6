-- Sets the start time of waiting jobs that have none to now, and removes it from jobs that do not wait. $1 limit
update milepost.live set ready_at = case when state in ('pending', 'retry_wait') then now() end
where id in (
    select l.id from milepost.live l
    where (l.state in ('pending', 'retry_wait')) <> (l.ready_at is not null)
    order by l.id limit $1
)
returning id::text
