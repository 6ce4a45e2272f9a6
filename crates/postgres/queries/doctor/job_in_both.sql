-- Jobs that are both live and ended.
select count(*) over () as count, l.id::text as what, 'state in live: ' || l.state::text || ', in ended: ' || e.state::text as detail
from milepost.live l
join milepost.ended e on e.id = l.id
order by what
limit 10
