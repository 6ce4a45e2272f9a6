-- Renews the lease of worker $1, unless it ran out, or the store is a restored dump in which the worker did not register.
update milepost.worker
set heartbeat_at = now(), lease_expires_at = now() + lease_ms * interval '1 millisecond'
where id = $1 and ended_at is null and lease_expires_at > now()
  and (event_table is null or event_table = 'milepost.event'::regclass)
