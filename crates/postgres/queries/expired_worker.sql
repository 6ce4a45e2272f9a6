-- Shortens leases that end later than a full lease from now: they were renewed while the clock was ahead, and the worker may
-- be dead. Then locks one worker whose lease has expired, or that has ended and may have left runs behind, against its own
-- claims and against other rescuers. Returns its id and its retry policies. $1 workers to leave out.
with shortened as (
    update milepost.worker set lease_expires_at = now() + lease_ms * interval '1 millisecond'
    where ended_at is null and lease_expires_at > now() + lease_ms * interval '1 millisecond' + interval '5 seconds'
)
select id, backoffs::text from (
    select id, backoffs from milepost.worker
    where ended_at is null and lease_expires_at < now() and id <> all ($1::int[])
    order by lease_expires_at
    limit 1
    for update skip locked
) expired
union all
select id, backoffs::text from (
    select id, backoffs from milepost.worker
    where ended_at is not null and cleared_at is null and id <> all ($1::int[])
    order by ended_at
    limit 1
    for update skip locked
) gone
limit 1
