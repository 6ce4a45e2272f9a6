-- The last state change of each of the jobs $1 that has one.
select h.pos, h.job_id, h.at, h.verb::text, h.from_state::text, h.to_state::text, h.attempt, h.token, h.worker_id, h.ready_at,
       h.error_code, h.error_message, h.note
from unnest($1::uuid[]) as asked (id)
cross join lateral (select * from milepost.history where job_id = asked.id order by pos desc limit 1) h
