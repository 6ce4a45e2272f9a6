-- Schedules by name: $1 only this one, $2 only those that are due, most overdue first, $3 limit, $4 only those after this name, $5 whether payloads
-- are read (else they are null). Payloads can be large: only those of the chosen schedules are read, whatever the plan of the first part.
with chosen as materialized (
    select name from milepost.schedule
    where ($1::text is null or name = $1) and ($4::text is null or name > $4) and (not $2 or (paused_at is null and next_at <= now()))
    order by case when $2 then next_at end, name
    limit $3
)
select name, spec, time_zone, kind, queue, case when $5 then payload::text else 'null' end as payload, priority, max_attempts, group_key, timeout_ms,
       misfire, misfire_max, misfire_grace_ms, source::text as source, version, paused_at, next_at, last_at, fired, dropped,
       dag, refused_at, refusal
from chosen join milepost.schedule using (name)
order by case when $2 then next_at end, name
