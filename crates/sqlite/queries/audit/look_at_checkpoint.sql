-- Returns the last sequence number that consumer ?1 has accepted of an aggregate: ?2 its type, ?3 its id.
SELECT json_object('last_seq', last_seq) FROM milepost_aggregate_checkpoint
WHERE consumer = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3
