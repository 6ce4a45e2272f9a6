-- Entries that do not start where the one before them ended.
select count(*) over () as count, h.job_id::text as what, 'entry ' || h.pos::text || ' starts from ' || coalesce(h.from_state::text, 'nothing') || ', the one before it ended in '
       || coalesce(h.before::text, 'nothing') as detail
from (
    select job_id, pos, from_state, lag(to_state) over (partition by job_id order by pos) as before
    from milepost.history
) h
where h.from_state is distinct from h.before
order by h.pos
limit 10
