-- Aggregates whose heads are behind their events.
SELECT count(*) OVER () AS count, e.aggregate_type || '/' || e.aggregate_id AS what,
       'the log has ' || e.last_seq || ', its row ' || coalesce(a.last_seq, 'is gone') AS detail
FROM (SELECT aggregate_type, aggregate_id, max(aggregate_seq) AS last_seq FROM milepost_event GROUP BY aggregate_type, aggregate_id) e
LEFT JOIN milepost_aggregate a ON a.aggregate_type = e.aggregate_type AND a.aggregate_id = e.aggregate_id
-- That of state changes goes with its job or batch, and is made anew where its events are.
WHERE a.last_seq < e.last_seq OR a.last_seq IS NULL AND substr(e.aggregate_type, 1, 9) <> 'milepost.'
ORDER BY what
LIMIT 10
