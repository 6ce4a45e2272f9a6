-- The state changes of job $1 after position $2, oldest first, at most $3.
select pos, job_id, at, verb::text, from_state::text, to_state::text, attempt, token, worker_id, ready_at,
       error_code, error_message, note
from milepost.history where job_id = $1 and pos > $2 order by pos limit $3
