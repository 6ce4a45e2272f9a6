-- The limit of kind $1.
select jsonb_build_object('per_second', per_second, 'burst', burst, 'source', source)::text
from milepost.kind_limit where kind = $1
