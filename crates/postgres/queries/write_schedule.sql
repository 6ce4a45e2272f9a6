-- Stores a schedule, or replaces the one with the same name (an operator's only for an operator): $1 name, $2 spec, $3 zone,
-- $4 kind, $5 queue, $6 payload (JSON text), $7 priority, $8 max attempts, $9 group, $10 timeout in ms, $11 misfire policy,
-- $12 its maximum, $13 grace in ms, $14 source, $15 next tick, ignored if the spec is unchanged, $16 DAG, $17 the version that it
-- replaces: null: any or none; 0: only none.
with replaced as materialized (
    select from milepost.schedule where name = $1 and version = $17 for update
)
insert into milepost.schedule as s (
    name, spec, time_zone, kind, queue, payload, priority, max_attempts, group_key, timeout_ms,
    misfire, misfire_max, misfire_grace_ms, source, next_at, dag)
select $1, $2, $3, $4, $5, $6::text::jsonb, $7, $8, $9, $10, $11, $12, $13, $14::text::milepost.schedule_source, $15, $16
where coalesce($17::bigint, 0) = 0 or exists (select from replaced)
on conflict (name) do update
set spec = excluded.spec, time_zone = excluded.time_zone, kind = excluded.kind, queue = excluded.queue,
    payload = excluded.payload, priority = excluded.priority, max_attempts = excluded.max_attempts,
    group_key = excluded.group_key, timeout_ms = excluded.timeout_ms, misfire = excluded.misfire,
    misfire_max = excluded.misfire_max, misfire_grace_ms = excluded.misfire_grace_ms, source = excluded.source,
    dag = excluded.dag, version = s.version + 1,
    next_at = case when (s.spec, s.time_zone) = (excluded.spec, excluded.time_zone) then s.next_at
                   else excluded.next_at end
where (s.source = excluded.source or excluded.source = 'operator') and s.version = coalesce($17, s.version)
