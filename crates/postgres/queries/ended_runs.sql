-- Those of the runs ($1 jobs, $2 run tokens, $3 verbs) that ended with exactly this verb according to the history, in
-- commits that a failover does not undo.
select h.job_id
from milepost.confirm_replication() confirmed
cross join unnest($1::uuid[], $2::int[], $3::text[]) as i(id, token, verb)
join milepost.history h on h.job_id = i.id and h.token = i.token and h.verb = i.verb::milepost.verb and h.from_state = 'running'
  -- A rescue also ends a run, but its worker did not report that end.
  and h.error_code is distinct from 'lease_lost'
