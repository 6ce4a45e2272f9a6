-- Active workers and publishers: those whose lease has not expired. ?1 now
SELECT printf('worker %d (%s)', id, name) FROM (
    SELECT id, name FROM milepost_worker WHERE ended_at_ms IS NULL AND lease_expires_at_ms > ?1 ORDER BY id
)
UNION ALL
SELECT printf('relay %s (subscription %s)', label, subscription) FROM (
    SELECT label, subscription FROM milepost_publisher WHERE lease_until_ms > ?1 ORDER BY subscription, started_at_ms
)
