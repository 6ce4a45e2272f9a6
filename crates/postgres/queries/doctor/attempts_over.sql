-- Jobs with more attempts than allowed.
select count(*) over () as count, s.id::text as what, 'attempt ' || s.attempt::text || ' of ' || s.max_attempts::text as detail
from (select id, state, token, attempt, max_attempts from milepost.live
      union all select id, state, token, attempt, max_attempts from milepost.ended) s
where s.attempt > s.max_attempts
order by what
limit 10
