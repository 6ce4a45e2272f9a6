-- Registers a publisher. ?1 id, ?2 subscription, ?3 label, ?4 now, ?5 end of its lease, ?6 whether it leaves the subscription to others
INSERT INTO milepost_publisher (id, subscription, label, started_at_ms, lease_until_ms, stands_aside) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (id) DO UPDATE SET lease_until_ms = excluded.lease_until_ms, stands_aside = excluded.stands_aside
