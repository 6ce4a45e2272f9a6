-- The input of batch $1, and its schema in version $2 of the DAG (JSON texts; null: none). has_version: whether that version
-- exists.
select b.dag, v.id is not null as has_version, i.input::text as input, case when b.items_of is null then v.input_schema::text end as input_schema
from milepost.batch b
left join milepost.dag_version v on v.name = b.dag and v.version = $2
left join milepost.batch_input i on i.batch_id = b.id
where b.id = $1
