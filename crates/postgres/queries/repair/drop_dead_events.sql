-- Deletes dead letters whose events are not at their positions in the log. $1 limit
delete from milepost.dead_event
where (subscription, event_id) in (
    select h.subscription, h.event_id from milepost.dead_event h
    where not exists (select from milepost.event e where e.slot = h.slot and e.pos = h.pos and e.event_id = h.event_id)
    limit $1
)
returning event_id::text
