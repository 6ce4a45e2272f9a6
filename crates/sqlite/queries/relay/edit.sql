-- Publishes a parked event as an operator wants, whatever the filter says about events that are published again. ?1 subscription, ?2 type, ?3 id,
-- ?4 position, ?5 the payload that is published instead of the original, NULL for the same as before
UPDATE milepost_parked_event SET edited = coalesce(?5, edited), replayed = 0
WHERE subscription = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3 AND pos = ?4
