-- Renews the lease of worker $1, unless it ran out.
update milepost.worker
set heartbeat_at = now(), lease_expires_at = now() + lease_ms * interval '1 millisecond'
where id = $1 and ended_at is null and lease_expires_at > now()
