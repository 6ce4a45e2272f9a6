-- Imports versions of DAGs. $9 schemas, as JSON text
insert into milepost.dag_version (id, name, number, version, tasks, edges, depth, created_at, input_schema, canonical)
overriding system value
select id, name, number, version, tasks, edges, depth, created_at, input_schema::jsonb, canonical
from unnest($1::bigint[], $2::text[], $3::int[], $4::text[], $5::int[], $6::int[], $7::int[], $8::timestamptz[],
            $9::text[], $10::text[])
    as r(id, name, number, version, tasks, edges, depth, created_at, input_schema, canonical)
