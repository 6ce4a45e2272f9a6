-- Stores the payload that is published instead of the original. ?1 subscription, ?2 type, ?3 id, ?4 position, ?5 the payload
UPDATE milepost_parked_event SET edited = ?5 WHERE subscription = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3 AND pos = ?4
