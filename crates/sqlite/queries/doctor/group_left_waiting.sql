-- Groups with a free slot and a job that has been due for long; groups with a rate only if their check is overdue. ?1 the examination
-- (JSON)
SELECT count(*) OVER () AS count, w.group_key AS what, w.jobs || ' jobs wait' AS detail
FROM (
    SELECT group_key, count(*) AS jobs FROM milepost_live
    WHERE state = 'blocked' AND group_key IS NOT NULL AND due_at_ms < (?1 ->> 'now_ms') - (?1 ->> 'patience_ms')
    GROUP BY group_key
) w
LEFT JOIN milepost_group_limit o ON o.name = w.group_key
LEFT JOIN milepost_group_limit c ON o.name IS NULL AND instr(w.group_key, ':') > 0
    AND c.name = substr(w.group_key, 1, instr(w.group_key, ':')) || '*'
WHERE ((coalesce(o.name, c.name) IS NOT NULL AND coalesce(o.slots, c.slots) IS NULL)
       OR (SELECT count(*) FROM milepost_group_slot s WHERE s.group_key = w.group_key) < coalesce(o.slots, c.slots, 1))
  AND (coalesce(o.per_second, c.per_second) IS NULL OR EXISTS (
      SELECT 1 FROM milepost_group_bucket b WHERE b.group_key = w.group_key AND b.look_at_us < 1000 * ((?1 ->> 'now_ms') - (?1 ->> 'patience_ms'))
  ))
ORDER BY what
LIMIT 10
