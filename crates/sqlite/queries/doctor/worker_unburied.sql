-- Workers whose lease ran out long ago. ?1 the look
SELECT count(*) OVER () AS count, w.id AS what, w.name AS detail
FROM milepost_worker w
WHERE w.ended_at_ms IS NULL AND w.lease_expires_at_ms < (?1 ->> 'now_ms') - (?1 ->> 'patience_ms')
ORDER BY what
LIMIT 10
