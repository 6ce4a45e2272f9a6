-- Registers a worker: $1 name, $2 queues, $3 kinds, $4 lease in ms, $5 retry policies of its kinds (JSON), $6 slots.
-- Begins the epoch first, if it is new, because ids of workers are not repeated in it.
with epoch as materialized (select milepost.current_epoch() as id)
insert into milepost.worker (name, queues, kinds, lease_ms, backoffs, slots, started_at, heartbeat_at, lease_expires_at)
select $1, $2, $3, $4::bigint, $5::text::jsonb, $6::int, now(), now(), now() + $4::bigint * interval '1 millisecond'
from epoch where epoch.id is not null
returning id
