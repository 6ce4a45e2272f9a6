-- Subscriptions with events that have waited for long, and without a publisher for as long. ?1 the examination (JSON)
SELECT count(*) OVER () AS count, s.name AS what, 'its position is ' || s.pos AS detail
FROM milepost_subscription s
WHERE s.paused_at_ms IS NULL AND coalesce(s.lease_until_ms, 0) < (?1 ->> 'now_ms') - (?1 ->> 'patience_ms')
  AND EXISTS (SELECT 1 FROM milepost_event e WHERE e.pos > s.pos AND e.emitted_at_ms < (?1 ->> 'now_ms') - (?1 ->> 'patience_ms'))
ORDER BY what
LIMIT 10
