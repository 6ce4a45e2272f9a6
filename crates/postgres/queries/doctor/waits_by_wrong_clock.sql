-- Waiting jobs whose history contains an entry more than a minute in the future.
select count(*) over () as count, l.id::text as what, 'waits until ' || coalesce(l.ready_at, l.due_at) as detail
from milepost.live l
where coalesce(l.ready_at, l.due_at) > now() + interval '1 minute'
  and exists (select from milepost.history h where h.job_id = l.id and h.at > now() + interval '1 minute')
order by what
limit 10
