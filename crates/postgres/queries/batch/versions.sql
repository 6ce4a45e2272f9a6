-- Versions, newest first: $1 DAG (null: all), $2 only the latest of each.
select v.name, v.number, v.version, g.latest = v.id as latest, v.tasks, v.edges, v.depth, v.created_at
from milepost.dag_version v
join milepost.dag g on g.name = v.name
where ($1::text is null or v.name = $1) and (not $2 or g.latest = v.id)
order by v.name, v.number desc
