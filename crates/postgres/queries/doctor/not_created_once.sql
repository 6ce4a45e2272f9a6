-- Jobs that their history does not create exactly once. Retention may leave of a job that is over its last entry.
select count(*) over () as count, c.id::text as what, 'its history creates it ' || c.entries::text || ' times' as detail
from (
    select j.id, (select count(*) from milepost.history h where h.job_id = j.id and h.verb = 'create') as entries
    from milepost.job j
) c
where c.entries <> 1
  and not (c.entries = 0 and exists (
    select from (select to_state from milepost.history h where h.job_id = c.id order by h.pos limit 1) first
    where first.to_state in ('succeeded', 'canceled', 'skipped', 'failed')))
order by what
limit 10
