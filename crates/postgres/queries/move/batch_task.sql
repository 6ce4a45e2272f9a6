-- Imports tasks of batches with their states.
insert into milepost.batch_task (batch_id, task, generation, state, job_id, child_id, pre_cnt, succeeded, failed, skipped, canceled)
select batch_id, task, generation, state::milepost.task_state, job_id, child_id, pre_cnt, succeeded, failed, skipped,
       canceled
from unnest($1::uuid[], $2::int[], $3::int[], $4::text[], $5::uuid[], $6::uuid[], $7::int[], $8::int[], $9::int[],
            $10::int[], $11::int[])
    as r(batch_id, task, generation, state, job_id, child_id, pre_cnt, succeeded, failed, skipped, canceled)
