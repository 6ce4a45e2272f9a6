-- Deletes events that were given up and that the log does not have at their places. $1 at most
delete from milepost.dead_event
where (subscription, event_id) in (
    select h.subscription, h.event_id from milepost.dead_event h
    where not exists (select from milepost.event e where e.slot = h.slot and e.pos = h.pos and e.event_id = h.event_id)
    limit $1
)
returning event_id::text
