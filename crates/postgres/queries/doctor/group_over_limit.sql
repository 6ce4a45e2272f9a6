-- Groups that more jobs hold than there are slots: one.
select count(*) over () as count, l.group_key as what, count(*)::text || ' jobs hold it' as detail
from milepost.live l
where l.group_key is not null and l.state in ('pending', 'running', 'retry_wait')
group by l.group_key
having count(*) > 1
order by what
limit 10
