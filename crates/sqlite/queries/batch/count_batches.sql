-- Counts the batches in each state, without those that are tasks of others.
SELECT state, count(*) FROM milepost_batch WHERE parent_id IS NULL GROUP BY state
