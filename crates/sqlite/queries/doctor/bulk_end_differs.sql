-- Bulk jobs that are through with their targets and whose job did not succeed, unless it was run again since; and those
-- whose job succeeded before, unless somebody marked it.
SELECT count(*) OVER () AS count, d.job_id AS what,
       CASE WHEN d.ended_at_ms IS NULL THEN 'succeeded, but is not through' ELSE 'is through, but stands as ' || d.state END AS detail
FROM (
    SELECT b.job_id, b.ended_at_ms, coalesce(l.state, e.state) AS state
    FROM milepost_bulk b
    LEFT JOIN milepost_live l ON l.id = b.job_id
    LEFT JOIN milepost_ended e ON e.id = b.job_id
) d
WHERE CASE WHEN d.ended_at_ms IS NULL
    THEN d.state = 'succeeded'
        AND (SELECT h.verb FROM milepost_history h WHERE h.job_id = d.job_id ORDER BY h.pos DESC LIMIT 1) = 'succeed'
    ELSE d.state <> 'succeeded'
        AND EXISTS (SELECT 1 FROM milepost_history h WHERE h.job_id = d.job_id AND h.verb = 'create')
        AND NOT EXISTS (SELECT 1 FROM milepost_history h WHERE h.job_id = d.job_id AND h.verb = 'rerun')
    END
ORDER BY what
LIMIT 10
