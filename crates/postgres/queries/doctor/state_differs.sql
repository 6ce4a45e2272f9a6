-- Jobs whose state is not the last one of their history.
select count(*) over () as count, d.id::text as what, 'its state is ' || d.state::text || ', the last one in its history is ' || d.told::text as detail
from (
    select s.id, s.state, (select h.to_state from milepost.history h where h.job_id = s.id order by h.pos desc limit 1) as told
    from (select id, state, token, attempt, max_attempts from milepost.live
      union all select id, state, token, attempt, max_attempts from milepost.ended) s
) d
where d.told <> d.state
order by what
limit 10
