-- Runs that ended twice.
select count(*) over () as count, h.job_id::text as what, 'run ' || h.token::text || ' has ' || count(*)::text || ' ends' as detail
from milepost.history h
where h.from_state = 'running'
group by h.job_id, h.token
having count(*) > 1
order by what
limit 10
