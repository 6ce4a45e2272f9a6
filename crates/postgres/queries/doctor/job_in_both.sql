-- Jobs that are live and have ended.
select count(*) over () as count, l.id::text as what, 'live as ' || l.state::text || ', ended as ' || e.state::text as detail
from milepost.live l
join milepost.ended e on e.id = l.id
order by what
limit 10
