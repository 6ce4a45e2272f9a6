-- Imports tasks of versions. $13 to $16 JSON texts
insert into milepost.dag_task (version_id, task, rule, plain, pre_cnt, key, kind, queue, priority, group_key, max_attempts,
                      timeout_ms, reads, spec, successors, predecessors)
select version_id, task, rule::milepost.task_rule, plain, pre_cnt, key, kind, queue, priority, group_key, max_attempts,
       timeout_ms, translate(reads, '[]', '{}')::int[], spec::jsonb, translate(successors, '[]', '{}')::int[],
       translate(predecessors, '[]', '{}')::int[]
from unnest($1::bigint[], $2::int[], $3::text[], $4::boolean[], $5::int[], $6::text[], $7::text[], $8::text[],
            $9::smallint[], $10::text[], $11::int[], $12::bigint[], $13::text[], $14::text[], $15::text[], $16::text[])
    as r(version_id, task, rule, plain, pre_cnt, key, kind, queue, priority, group_key, max_attempts, timeout_ms, reads,
         spec, successors, predecessors)
