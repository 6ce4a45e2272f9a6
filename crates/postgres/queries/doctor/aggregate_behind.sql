-- Aggregates whose heads are behind their events.
select count(*) over () as count, e.aggregate_type || '/' || e.aggregate_id as what,
       'last sequence in the log: ' || e.last_seq || ', in its row: ' || coalesce(a.last_seq::text, 'none, the row is missing') as detail
from (select aggregate_type, aggregate_id, max(aggregate_seq) as last_seq from milepost.event group by aggregate_type, aggregate_id) e
left join milepost.aggregate a on a.aggregate_type = e.aggregate_type and a.aggregate_id = e.aggregate_id
-- The head of state changes is deleted with its job or batch, and created again after the last of its events.
where a.last_seq < e.last_seq or a.last_seq is null and not starts_with(e.aggregate_type, 'milepost.')
order by what
limit 10
