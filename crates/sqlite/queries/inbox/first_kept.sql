-- Returns the first stored event of an aggregate. ?1 the consumer, ?2 the type of the aggregate, ?3 its id
SELECT min(seq) FROM (
    SELECT min(aggregate_seq) AS seq FROM milepost_inbox_parked WHERE consumer = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3
    UNION ALL
    SELECT min(aggregate_seq) FROM milepost_inbox_dead INDEXED BY milepost_inbox_dead_event
    WHERE consumer = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3 AND event_id IS NOT NULL AND reason = 'gap'
)
