-- Where the last rollup ended and when (null before the first), and the last position in the history.
SELECT p.pos, p.at_ms, (SELECT coalesce(max(pos), 0) FROM milepost_history) AS newest
FROM (SELECT 1) LEFT JOIN milepost_rollup_position p ON TRUE
