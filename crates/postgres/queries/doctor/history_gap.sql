-- Entries that do not start where the one before them ended. Retention may leave of a job that is over its last one.
select count(*) over () as count, h.job_id::text as what, 'entry ' || h.pos::text || ' starts from ' || coalesce(h.from_state::text, 'nothing') || ', the one before it ended in '
       || coalesce(h.before::text, 'nothing') as detail
from (
    select job_id, pos, from_state, to_state, row_number() over (partition by job_id order by pos) as nth,
           lag(to_state) over (partition by job_id order by pos) as before
    from milepost.history
) h
where h.from_state is distinct from h.before
  and not (h.nth = 1 and h.to_state in ('succeeded', 'canceled', 'skipped', 'failed'))
order by h.pos
limit 10
