-- Running jobs whose stop deadline passed long ago. ?1 the examination (JSON)
SELECT count(*) OVER () AS count, l.id AS what, 'asked to ' || l.stop_verb AS detail
FROM milepost_live l
WHERE l.state = 'running' AND l.stop_at_ms < (?1 ->> 'now_ms') - (?1 ->> 'patience_ms')
ORDER BY what
LIMIT 10
