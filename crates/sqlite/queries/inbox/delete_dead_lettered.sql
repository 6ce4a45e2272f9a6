-- Deletes parked events that became dead letters. ?1 the consumer, ?2 the type of the aggregate, ?3 its id
DELETE FROM milepost_inbox_parked
WHERE consumer = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3
  AND EXISTS (SELECT 1 FROM milepost_inbox_dead d INDEXED BY milepost_inbox_dead_event
              WHERE d.consumer = ?1 AND d.aggregate_type = ?2 AND d.aggregate_id = ?3
                AND d.aggregate_seq = milepost_inbox_parked.aggregate_seq AND d.event_id IS NOT NULL)
