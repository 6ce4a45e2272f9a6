-- Entries whose token is not that of the previous entry, or, for a claim, not higher. Retention may have deleted the first
-- entries of a job that had ended before.
select count(*) over () as count, h.job_id::text as what, 'entry ' || h.pos::text || ' (' || h.verb::text || ') has token ' || h.token::text || ' after ' || h.before::text as detail
from (
    select job_id, pos, verb, token, to_state, row_number() over (partition by job_id order by pos) as nth,
           coalesce(lag(token) over (partition by job_id order by pos), 0) as before,
           bool_or(to_state in ('succeeded', 'canceled', 'skipped', 'failed')) over (partition by job_id) as was_over
    from milepost.history
) h
where case when h.verb = 'claim' then h.token <= h.before else h.token <> h.before end
  and not (h.nth = 1 and h.verb <> 'create' and h.was_over)
order by h.pos
limit 10
