-- The names of types, in their order, as casts write them.
select format_type(t.oid::oid, null)
from unnest($1::bigint[]) with ordinality t(oid, ord)
order by t.ord
