-- The names of types, in the order of $1, as written in casts: without a length, because some bare names mean length 1.
select format_type(t.oid::oid, -1)
from unnest($1::bigint[]) with ordinality t(oid, ord)
order by t.ord
