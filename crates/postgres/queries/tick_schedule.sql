-- Moves schedule $14 from version $15 to its next tick $16 and enqueues the jobs of the ticks before ($1 to $13 as in
-- enqueue_many); $17 the last of these ticks, $18 number of other ticks dropped, $19 the tick whose batch was refused, $20
-- the reason. One statement, so that a process that hangs cannot leave a transaction open. No row: the schedule has another
-- version now.
with moved as (
    update milepost.schedule
    set next_at = $16, last_at = coalesce($17, last_at), fired = fired + cardinality($11::uuid[]),
        dropped = dropped + $18, refused_at = $19, refusal = $20, version = version + 1
    where name = $14 and version = $15 and paused_at is null
    returning name
)
select made.job_id, made.duplicate
from moved
left join lateral milepost.enqueue_many($1::text[], $2::text[]::jsonb[], $3::text[], $4::text[], $5::int[], $6::text[],
                                        $7::timestamptz[], $8::bigint[], $9::int[], $10::bigint[], $11::uuid[], null,
                                        $12::timestamptz[], $13::text[]) made on true
