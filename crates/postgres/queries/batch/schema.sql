-- The schema of the input of a version, and the version itself: $1 DAG, $2 version (null: the latest).
select v.version, v.input_schema::text as input_schema
from milepost.dag g
join milepost.dag_version v on v.name = g.name
where g.name = $1 and (v.version = $2 or $2 is null and v.id = g.latest)
