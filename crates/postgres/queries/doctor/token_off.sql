-- Entries whose token is not the one before them, or one more for a claim.
select count(*) over () as count, h.job_id::text as what, 'entry ' || h.pos::text || ' (' || h.verb::text || ') has token ' || h.token::text || ' after ' || h.before::text as detail
from (
    select job_id, pos, verb, token, coalesce(lag(token) over (partition by job_id order by pos), 0) as before
    from milepost.history
) h
where h.token <> h.before + case when h.verb = 'claim' then 1 else 0 end
order by h.pos
limit 10
