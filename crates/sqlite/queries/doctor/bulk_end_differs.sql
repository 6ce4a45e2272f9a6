-- Bulk jobs that have finished their targets and whose job did not succeed, unless it has been rerun since; and bulk jobs whose job
-- succeeded before that, unless an operator marked it as succeeded.
SELECT count(*) OVER () AS count, d.job_id AS what,
       CASE WHEN d.ended_at_ms IS NULL THEN 'succeeded, but has not processed all targets' ELSE 'has processed all targets, but its state is ' || d.state END AS detail
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
