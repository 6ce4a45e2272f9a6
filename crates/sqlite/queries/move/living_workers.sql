-- Workers whose lease holds. ?1 now
SELECT id, name FROM milepost_worker WHERE ended_at_ms IS NULL AND lease_expires_at_ms > ?1 ORDER BY id
