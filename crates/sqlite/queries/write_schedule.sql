-- Stores a schedule, or replaces the one with the same name; only an operator can replace an operator's.
-- ?1 name, ?2 spec, ?3 zone, ?4 kind, ?5 queue, ?6 payload, ?7 priority, ?8 max attempts, ?9 group, ?10 timeout,
-- ?11 misfire policy, ?12 its maximum, ?13 grace, ?14 source, ?15 next tick, ignored if spec and time zone are unchanged,
-- ?16 the version of a new one, ?17 DAG, ?18 the version that it replaces: NULL: any or none; 0: only none
INSERT INTO milepost_schedule (
    name, spec, time_zone, kind, queue, payload, priority, max_attempts, group_key, timeout_ms,
    misfire, misfire_max, misfire_grace_ms, source, next_at_ms, version, dag
) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17
WHERE coalesce(?18, 0) = 0 OR EXISTS (SELECT 1 FROM milepost_schedule WHERE name = ?1 AND version = ?18)
ON CONFLICT (name) DO UPDATE
SET spec = excluded.spec, time_zone = excluded.time_zone, kind = excluded.kind, queue = excluded.queue,
    payload = excluded.payload, priority = excluded.priority, max_attempts = excluded.max_attempts,
    group_key = excluded.group_key, timeout_ms = excluded.timeout_ms, misfire = excluded.misfire,
    misfire_max = excluded.misfire_max, misfire_grace_ms = excluded.misfire_grace_ms,
    source = excluded.source, dag = excluded.dag, version = milepost_schedule.version + 1,
    next_at_ms = CASE WHEN (milepost_schedule.spec, milepost_schedule.time_zone) = (excluded.spec, excluded.time_zone)
                      THEN milepost_schedule.next_at_ms ELSE excluded.next_at_ms END
WHERE (milepost_schedule.source = excluded.source OR excluded.source = 'operator')
  AND milepost_schedule.version = coalesce(?18, milepost_schedule.version)
