-- Stores tasks of version $1: $2 numbers, $3 keys, $4 rules, $5 whether plain, $6 successors, $7 predecessors and $8
-- predecessors that are read (each a list as text, like {1,2}), $9 definitions (JSON text), $10 kinds, $11 queues, $12
-- priorities, $13 groups, $14 attempts, $15 time limits in ms.
insert into milepost.dag_task (version_id, task, key, rule, plain, pre_cnt, successors, predecessors, reads, spec, kind, queue, priority,
                               group_key, max_attempts, timeout_ms)
select $1, i.task, i.key, i.rule::milepost.task_rule, i.plain, cardinality(i.predecessors::int[]), i.successors::int[],
       i.predecessors::int[], i.reads::int[], i.spec::jsonb, i.kind, i.queue, i.priority::smallint, i.group_key, i.max_attempts, i.timeout_ms
from unnest($2::int[], $3::text[], $4::text[], $5::boolean[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[],
            $12::int[], $13::text[], $14::int[], $15::bigint[])
    as i(task, key, rule, plain, successors, predecessors, reads, spec, kind, queue, priority, group_key, max_attempts, timeout_ms)
