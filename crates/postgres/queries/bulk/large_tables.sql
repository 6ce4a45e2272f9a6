-- Those of tables $1 (schema-qualified names) that are too large for a sequential scan in every chunk.
select c.oid::regclass::text
from unnest($1::text[]) n(name)
join pg_class c on c.oid = to_regclass(n.name)
where pg_relation_size(c.oid) > 8 * 1024 * 1024
