-- Batches with due tasks or uncounted ends that have not been updated for long. ?1 the examination (JSON)
SELECT count(*) OVER () AS count, b.id AS what,
       iif(b.due > 0 AND b.stop IS NULL, b.due || ' tasks are due', 'ends of tasks are waiting to be counted') AS detail
FROM milepost_batch b
WHERE b.updated_at_ms < (?1 ->> 'now_ms') - (?1 ->> 'patience_ms')
  AND (b.due > 0 AND b.stop IS NULL OR EXISTS (SELECT 1 FROM milepost_batch_spread s WHERE s.batch_id = b.id))
ORDER BY what
LIMIT 10
