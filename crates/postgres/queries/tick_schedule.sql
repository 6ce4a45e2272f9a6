-- Moves schedule $13 on from version $14 to its next tick $15 and enqueues the jobs of the ticks before ($1 to $12
-- as in enqueue_many); $16 the last of these ticks, $17 how many others were dropped, $18 the tick whose batch was
-- refused, $19 why. One statement on purpose: a process that is stopped cannot leave a transaction open in the
-- middle. No row: it has another version by now.
with moved as (
    update milepost.schedule
    set next_at = $15, last_at = coalesce($16, last_at), fired = fired + cardinality($11::uuid[]),
        dropped = dropped + $17, refused_at = $18, refusal = $19, version = version + 1
    where name = $13 and version = $14 and paused_at is null
    returning name
)
select made.job_id, made.duplicate
from moved
left join lateral milepost.enqueue_many($1::text[], $2::text[]::jsonb[], $3::text[], $4::text[], $5::int[], $6::text[],
                                        $7::timestamptz[], $8::bigint[], $9::int[], $10::bigint[], $11::uuid[], null,
                                        $12::timestamptz[]) made on true
