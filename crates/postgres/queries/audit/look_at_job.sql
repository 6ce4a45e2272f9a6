-- The state of job $1.
select jsonb_build_object('state', coalesce(l.state, e.state), 'ready_at', coalesce(l.ready_at, l.due_at),
                          'stop', l.stop_verb, 'stop_at', l.stop_at)::text
from milepost.job j left join milepost.live l on l.id = j.id left join milepost.ended e on e.id = j.id
where j.id = $1
