-- Moves a schedule to its next tick, if it still has this version.
-- ?1 name, ?2 version, ?3 next tick, ?4 last tick that created jobs, ?5 how many jobs, ?6 how many ticks were dropped,
-- ?7 the tick whose batch was refused, ?8 why
UPDATE milepost_schedule
SET next_at_ms = ?3, last_at_ms = coalesce(?4, last_at_ms), fired = fired + ?5, dropped = dropped + ?6,
    refused_at_ms = ?7, refusal = ?8, version = version + 1
WHERE name = ?1 AND version = ?2 AND paused_at_ms IS NULL
