-- Imports ends of tasks that are still to be counted.
insert into milepost.batch_spread (pos, batch_id, task, was, state, position)
overriding system value
select pos, batch_id, task, was::milepost.task_state, state::milepost.task_state, position
from unnest($1::bigint[], $2::uuid[], $3::int[], $4::text[], $5::text[], $6::int[])
    as r(pos, batch_id, task, was, state, position)
