-- The states that the first $2 jobs of an operation on many jobs (run $1) have now, and how many have each.
select coalesce(l.state, e.state)::text as state, count(*) as jobs
from milepost.bulk b
join milepost.bulk_target t on t.run = b.origin and t.n <= $2
left join milepost.live l on l.id = (t.row ->> 'job')::uuid
left join milepost.ended e on e.id = (t.row ->> 'job')::uuid
where b.job_id = $1 and coalesce(l.state, e.state) is not null
group by 1
