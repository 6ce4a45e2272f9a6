-- Deletes the last sequence number of a batch's state changes, if there is one. ?1 the batch, ?2 its id as text
DELETE FROM milepost_aggregate
WHERE aggregate_type = (SELECT 'milepost.batch.' || dag FROM milepost_batch WHERE id = ?1) AND aggregate_id = ?2
