-- Which of the runs ($1 jobs, $2 run tokens, $3 verbs) history knows to have ended in this very way, by ends that a failover does not take back.
select h.job_id
from milepost.confirm_replication() confirmed
cross join unnest($1::uuid[], $2::int[], $3::text[]) as i(id, token, verb)
join milepost.history h on h.job_id = i.id and h.token = i.token and h.verb = i.verb::milepost.verb and h.from_state = 'running'
  -- A rescue ends a run, too, but not by its worker's word.
  and h.error_code is distinct from 'lease_lost'
