-- Publishers, active or on standby. ?1 now
SELECT p.subscription, p.label, p.started_at_ms, p.lease_until_ms, p.down_since_ms, p.down_why,
       s.owner IS p.id, CASE WHEN s.owner IS p.id THEN s.token END, CASE WHEN s.owner IS p.id THEN s.held_since_ms END
FROM milepost_publisher p
JOIN milepost_subscription s ON s.name = p.subscription
WHERE p.lease_until_ms > ?1
ORDER BY p.subscription, p.started_at_ms
