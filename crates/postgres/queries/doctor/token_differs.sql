-- Jobs whose token is not the highest of their history.
select count(*) over () as count, d.id::text as what, 'token ' || d.token::text || ', the highest in its history is ' || d.told::text as detail
from (
    select s.id, s.token, (select max(h.token) from milepost.history h where h.job_id = s.id) as told
    from (select id, state, token, attempt, max_attempts from milepost.live
      union all select id, state, token, attempt, max_attempts from milepost.ended) s
) d
where d.told <> d.token
order by what
limit 10
