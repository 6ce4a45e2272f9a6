-- Returns the last sequence number of an aggregate. ?1 its type, ?2 its id
SELECT last_seq FROM milepost_aggregate WHERE aggregate_type = ?1 AND aggregate_id = ?2
