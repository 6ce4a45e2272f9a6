-- Stores version $2 of DAG $1, if it is new: $3 canonical form, $4 schema of the input (JSON text or null), $5 tasks, $6
-- edges, $7 depth. The caller has locked the DAG. Returns the id of a new version.
insert into milepost.dag_version (name, number, version, canonical, input_schema, tasks, edges, depth)
select $1, coalesce(max(v.number), 0) + 1, $2, $3, $4::text::jsonb, $5, $6, $7
from milepost.dag_version v where v.name = $1
on conflict (name, version) do nothing
returning id
