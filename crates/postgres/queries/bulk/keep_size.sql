-- Stores the size $3 of the current chunk of run token $2 of bulk job $1, so that the chunk is the same when it is read
-- again.
update milepost.bulk
set chunk_rows = $3
where job_id = $1 and token = $2 and ended_at is null and chunk_rows is distinct from $3
