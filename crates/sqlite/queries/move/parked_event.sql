-- A page of parked_event. ?1 how many, ?2 after this subscription, ?3 type of aggregate, ?4 id and ?5 pos
SELECT subscription, aggregate_type, aggregate_id, pos, event_id, edited, replayed FROM milepost_parked_event
WHERE (subscription, aggregate_type, aggregate_id, pos) > (?2, ?3, ?4, ?5) ORDER BY subscription, aggregate_type, aggregate_id, pos LIMIT ?1
