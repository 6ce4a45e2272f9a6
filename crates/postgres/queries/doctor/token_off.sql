-- Entries whose token is not the one before them, or one more for a claim. Retention may leave of a job that is over
-- its last one.
select count(*) over () as count, h.job_id::text as what, 'entry ' || h.pos::text || ' (' || h.verb::text || ') has token ' || h.token::text || ' after ' || h.before::text as detail
from (
    select job_id, pos, verb, token, to_state, row_number() over (partition by job_id order by pos) as nth,
           coalesce(lag(token) over (partition by job_id order by pos), 0) as before
    from milepost.history
) h
where h.token <> h.before + case when h.verb = 'claim' then 1 else 0 end
  and not (h.nth = 1 and h.to_state in ('succeeded', 'canceled', 'skipped', 'failed'))
order by h.pos
limit 10
