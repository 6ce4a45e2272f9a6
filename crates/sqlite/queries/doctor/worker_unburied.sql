-- Workers whose lease expired long ago and that are not marked as ended. ?1 the examination (JSON)
SELECT count(*) OVER () AS count, w.id AS what, w.name AS detail
FROM milepost_worker w
WHERE w.ended_at_ms IS NULL AND w.lease_expires_at_ms < (?1 ->> 'now_ms') - (?1 ->> 'patience_ms')
ORDER BY what
LIMIT 10
