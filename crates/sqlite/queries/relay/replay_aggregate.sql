-- Parks the published events of an aggregate. ?1 subscription, ?2 type, ?3 id, ?4 from this sequence number
INSERT INTO milepost_parked_event (subscription, aggregate_type, aggregate_id, pos, event_id, replayed)
SELECT ?1, e.aggregate_type, e.aggregate_id, e.pos, e.event_id, 1
FROM milepost_event e
WHERE e.aggregate_type = ?2 AND e.aggregate_id = ?3 AND e.aggregate_seq >= ?4
  AND e.pos <= (SELECT pos FROM milepost_subscription WHERE name = ?1)
ON CONFLICT DO NOTHING
