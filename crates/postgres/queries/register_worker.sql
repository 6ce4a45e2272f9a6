-- Registers a worker: $1 name, $2 queues, $3 kinds, $4 lease in ms.
insert into milepost.worker (name, queues, kinds, lease_ms, started_at, heartbeat_at, lease_expires_at)
values ($1, $2, $3, $4::bigint, now(), now(), now() + $4::bigint * interval '1 millisecond')
returning id
