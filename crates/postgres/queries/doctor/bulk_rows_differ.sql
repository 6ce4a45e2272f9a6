-- Files of runs whose rows are not the ones that were staged. Files that retention has begun to delete have no run any more.
select count(*) over () as count, f.run::text as what,
       f.rows::text || ' rows were staged, ' || coalesce(t.found, 0)::text || ' are stored' as detail
from milepost.bulk_file f
left join (
    select run, count(*) as found, min(n) as first, max(n) as last from milepost.bulk_target group by run
) t on t.run = f.run
where f.started_at is not null
  and exists (select from milepost.bulk b where b.origin = f.run)
  and (coalesce(t.found, 0), coalesce(t.first, 1), coalesce(t.last, 0)) <> (f.rows, 1, f.rows)
order by what
limit 10
