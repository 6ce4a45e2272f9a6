-- Schedules with a tick that is long overdue. ?1 the examination (JSON)
SELECT count(*) OVER () AS count, s.name AS what, 'its tick is due' AS detail
FROM milepost_schedule s
WHERE s.paused_at_ms IS NULL AND s.next_at_ms < (?1 ->> 'now_ms') - (?1 ->> 'patience_ms')
ORDER BY what
LIMIT 10
