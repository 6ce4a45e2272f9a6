-- Locks the progress of bulk job $1 for a chunk of run token $2. No row: fenced.
select cursor_key::text as cursor_key, upper_key::text as upper_key
from milepost.bulk where job_id = $1 and token = $2 and ended_at is null
for update
