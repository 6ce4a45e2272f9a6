-- Entries whose state before is not the state after of the previous entry. Retention may have deleted the first entries of a
-- job that had ended before.
select count(*) over () as count, h.job_id::text as what, 'entry ' || h.pos::text || ' starts from ' || coalesce(h.from_state::text, 'nothing') || ', the previous entry ended in '
       || coalesce(h.before::text, 'nothing') as detail
from (
    select job_id, pos, verb, from_state, to_state, row_number() over (partition by job_id order by pos) as nth,
           lag(to_state) over (partition by job_id order by pos) as before,
           bool_or(to_state in ('succeeded', 'canceled', 'skipped', 'failed')) over (partition by job_id) as was_over
    from milepost.history
) h
where h.from_state is distinct from h.before
  and not (h.nth = 1 and h.verb <> 'create' and h.was_over)
order by h.pos
limit 10
