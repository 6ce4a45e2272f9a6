-- Groups with a free slot and a job that is long due. $1 the look
select count(*) over () as count, l.group_key as what, count(*)::text || ' jobs wait' as detail
from milepost.live l
where l.state = 'blocked' and l.group_key is not null and l.due_at < now() - ($1::jsonb ->> 'patience_ms')::bigint * interval '1 millisecond'
  and not exists (select from milepost.group_slot s where s.group_key = l.group_key)
group by l.group_key
order by what
limit 10
