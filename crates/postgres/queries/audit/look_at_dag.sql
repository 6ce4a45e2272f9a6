-- The latest version of DAG $1.
select jsonb_build_object('number', v.number, 'version', v.version, 'tasks', v.tasks)::text
from milepost.dag d join milepost.dag_version v on v.id = d.latest
where d.name = $1
