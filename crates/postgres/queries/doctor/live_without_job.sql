-- Live rows whose job does not exist.
select count(*) over () as count, l.id::text as what, 'state in live: ' || l.state::text as detail
from milepost.live l
where not exists (select from milepost.job j where j.id = l.id)
order by what
limit 10
