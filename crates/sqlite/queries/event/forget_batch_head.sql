-- Forgets the head of a batch's changes, if it has one. ?1 the batch, ?2 its id as text
DELETE FROM milepost_aggregate
WHERE aggregate_type = (SELECT 'milepost.batch.' || dag FROM milepost_batch WHERE id = ?1) AND aggregate_id = ?2
