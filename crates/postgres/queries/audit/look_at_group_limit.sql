-- The limit of group or class $1.
select jsonb_build_object('slots', slots, 'per_second', per_second, 'burst', burst, 'source', source)::text
from milepost.group_limit where name = $1
