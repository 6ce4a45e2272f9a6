-- Jobs that are neither live nor ended.
select count(*) over () as count, j.id::text as what, 'last state in its history: ' || coalesce((select h.to_state::text from milepost.history h where h.job_id = j.id order by h.pos desc limit 1), 'none') as detail
from milepost.job j
where not exists (select from milepost.live l where l.id = j.id) and not exists (select from milepost.ended e where e.id = j.id)
order by what
limit 10
