-- Moves schedule $1 from version $2 to its next tick $3 and starts the batch of the tick before: $4 its DAG, $5 its version,
-- $6 its key, $7 its input (JSON text), which was checked, $8 its id, $9 its tick; $10 number of other ticks dropped; $11
-- its trace, $12 the time zone of its tick's date. One statement, as tick_schedule. No row: the schedule has another version
-- now.
with moved as (
    update milepost.schedule
    set next_at = $3, last_at = $9, fired = fired + 1, dropped = dropped + $10, refused_at = null, refusal = null,
        version = version + 1
    where name = $1 and version = $2 and paused_at is null
    returning name
)
select made.batch_id, made.duplicate, case when made.due_made > 0 then milepost.wake_to_advance() end
from moved
left join lateral milepost.begin_batch($4, $6, $7::text::jsonb, $5, true, $8, $9, $11, $12) made on true
