-- Deletes parked events that are not at their positions in the log. $1 limit
delete from milepost.parked_event
where (subscription, aggregate_type, aggregate_id, pos) in (
    select h.subscription, h.aggregate_type, h.aggregate_id, h.pos from milepost.parked_event h
    where not exists (select from milepost.event e where e.slot = h.slot and e.pos = h.pos and e.event_id = h.event_id)
    limit $1
)
returning event_id::text
