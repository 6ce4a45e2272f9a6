-- Returns the first sequence number of an aggregate in the log. ?1 type, ?2 id
SELECT min(aggregate_seq) FROM milepost_event WHERE aggregate_type = ?1 AND aggregate_id = ?2
