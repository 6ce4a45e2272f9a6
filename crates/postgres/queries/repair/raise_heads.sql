-- Raises heads of aggregates to the last number of their events, and creates missing ones. $1 limit
insert into milepost.aggregate as h (aggregate_type, aggregate_id, last_seq, slot)
select e.aggregate_type, e.aggregate_id, max(e.aggregate_seq), min(e.slot)
from milepost.event e
left join milepost.aggregate a on a.aggregate_type = e.aggregate_type and a.aggregate_id = e.aggregate_id
group by e.aggregate_type, e.aggregate_id, a.last_seq
having a.last_seq < max(e.aggregate_seq) or a.last_seq is null and not starts_with(e.aggregate_type, 'milepost.')
order by e.aggregate_type, e.aggregate_id
limit $1
on conflict (aggregate_type, aggregate_id) do update set last_seq = greatest(h.last_seq, excluded.last_seq)
returning aggregate_type || '/' || aggregate_id
