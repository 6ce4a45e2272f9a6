-- Raises the last sequence numbers of aggregates to those of their events, and adds missing rows. ?1 at most
INSERT INTO milepost_aggregate (aggregate_type, aggregate_id, last_seq)
SELECT e.aggregate_type, e.aggregate_id, max(e.aggregate_seq)
FROM milepost_event e
LEFT JOIN milepost_aggregate a ON a.aggregate_type = e.aggregate_type AND a.aggregate_id = e.aggregate_id
GROUP BY e.aggregate_type, e.aggregate_id
HAVING a.last_seq < max(e.aggregate_seq) OR a.last_seq IS NULL AND substr(e.aggregate_type, 1, 9) <> 'milepost.'
LIMIT ?1
ON CONFLICT DO UPDATE SET last_seq = max(last_seq, excluded.last_seq)
RETURNING aggregate_type || '/' || aggregate_id
