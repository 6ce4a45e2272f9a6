-- Registers a process incarnation and starts its lease.
-- ?1 name, ?2 queues, ?3 kinds (JSON arrays), ?4 lease in ms, ?5 now, ?6 when the lease ends, ?7 the backoff policies of its kinds (JSON), ?8 slots
INSERT INTO milepost_worker (name, queues, kinds, lease_ms, started_at_ms, heartbeat_at_ms, lease_expires_at_ms, backoffs, slots)
VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6, ?7, ?8)
