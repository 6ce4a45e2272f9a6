-- A page of aggregate. ?1 how many, ?2 after this type, ?3 and id
SELECT aggregate_type, aggregate_id, last_seq FROM milepost_aggregate
WHERE (aggregate_type, aggregate_id) > (?2, ?3) ORDER BY aggregate_type, aggregate_id LIMIT ?1
