-- Parks an event. ?1 subscription, ?2 type of the aggregate, ?3 its id, ?4 position, ?5 id
INSERT INTO milepost_parked_event (subscription, aggregate_type, aggregate_id, pos, event_id) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT DO NOTHING
