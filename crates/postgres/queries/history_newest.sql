-- The newest $2 state changes of job $1, oldest first.
select pos, job_id, at, verb::text, from_state::text, to_state::text, attempt, token, worker_id, ready_at,
       error_code, error_message, note
from (select * from milepost.history where job_id = $1 order by pos desc limit $2) newest
order by pos
