-- Aggregates whose heads are behind their events.
select count(*) over () as count, e.aggregate_type || '/' || e.aggregate_id as what,
       'the log has ' || e.last_seq || ', its row ' || coalesce(a.last_seq::text, 'is gone') as detail
from (select aggregate_type, aggregate_id, max(aggregate_seq) as last_seq from milepost.event group by aggregate_type, aggregate_id) e
left join milepost.aggregate a on a.aggregate_type = e.aggregate_type and a.aggregate_id = e.aggregate_id
-- That of state changes goes with its job or batch, and is made anew where its events are.
where a.last_seq < e.last_seq or a.last_seq is null and not starts_with(e.aggregate_type, 'milepost.')
order by what
limit 10
