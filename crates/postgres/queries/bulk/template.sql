-- The kind, payload and options with which bulk job $1 was started.
select j.kind, j.queue, j.payload::text as payload, j.group_key, j.priority, j.max_attempts
from milepost.job j join milepost.bulk b on b.job_id = j.id
where j.id = $1
