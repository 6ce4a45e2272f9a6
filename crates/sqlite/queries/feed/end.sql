-- Returns the newest positions of the histories of jobs and of batches.
SELECT coalesce((SELECT max(pos) FROM milepost_history), 0), coalesce((SELECT max(pos) FROM milepost_batch_history), 0)
