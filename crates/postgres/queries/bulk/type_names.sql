-- The names of types, in their order, as casts write them: without a length, where a name alone would mean the length 1.
select format_type(t.oid::oid, -1)
from unnest($1::bigint[]) with ordinality t(oid, ord)
order by t.ord
