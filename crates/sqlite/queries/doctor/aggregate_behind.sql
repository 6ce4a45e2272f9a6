-- Aggregates whose last sequence number is lower than that of their events.
SELECT count(*) OVER () AS count, e.aggregate_type || '/' || e.aggregate_id AS what,
       'last sequence in the log: ' || e.last_seq || ', in its row: ' || coalesce(a.last_seq, 'none, the row is missing') AS detail
FROM (SELECT aggregate_type, aggregate_id, max(aggregate_seq) AS last_seq FROM milepost_event GROUP BY aggregate_type, aggregate_id) e
LEFT JOIN milepost_aggregate a ON a.aggregate_type = e.aggregate_type AND a.aggregate_id = e.aggregate_id
-- The row for an aggregate of state changes is deleted with its job or batch, and is created again from its events.
WHERE a.last_seq < e.last_seq OR a.last_seq IS NULL AND substr(e.aggregate_type, 1, 9) <> 'milepost.'
ORDER BY what
LIMIT 10
