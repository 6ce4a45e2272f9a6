-- Jobs that their history does not create exactly once.
select count(*) over () as count, c.id::text as what, 'its history creates it ' || c.entries::text || ' times' as detail
from (
    select j.id, (select count(*) from milepost.history h where h.job_id = j.id and h.verb = 'create') as entries
    from milepost.job j
) c
where c.entries <> 1
order by what
limit 10
