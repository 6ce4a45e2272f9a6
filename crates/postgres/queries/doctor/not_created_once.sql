-- Jobs whose history does not contain exactly one creation. Retention may have deleted the first entries of a job that had
-- ended before.
select count(*) over () as count, c.id::text as what, 'creations in its history: ' || c.entries::text as detail
from (
    select j.id, (select count(*) from milepost.history h where h.job_id = j.id and h.verb = 'create') as entries
    from milepost.job j
) c
where c.entries <> 1
  and not (c.entries = 0 and exists (
    select from milepost.history h where h.job_id = c.id and h.to_state in ('succeeded', 'canceled', 'skipped', 'failed')))
order by what
limit 10
