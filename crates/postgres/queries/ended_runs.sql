-- Those of the runs ($1 jobs, $2 run tokens, $3 verbs, $4 error codes) that ended so according to the history. A requested stop replaces the verb, but not the failure.
select h.job_id, h.token
from unnest($1::uuid[], $2::int[], $3::text[], $4::text[]) as i(id, token, verb, error_code)
join milepost.history h on h.job_id = i.id and h.token = i.token and h.from_state = 'running'
  and (h.verb = i.verb::milepost.verb
    or h.verb in ('cancel', 'abort') and h.error_code = i.error_code
    or h.verb = 'cancel' and i.verb = 'abort')
  -- A rescue also ends a run, but its worker did not report that end.
  and h.error_code is distinct from 'lease_lost'
