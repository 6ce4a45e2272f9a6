-- Bulk jobs whose cursor is past their last target, or that have a cursor although their last target is unknown. Only single integers are
-- compared: other keys may have a different order.
SELECT count(*) OVER () AS count, b.job_id AS what,
       'its cursor is at ' || b.cursor_key || ', its last target is ' || coalesce(b.upper_key, 'unknown') AS detail
FROM milepost_bulk b
WHERE b.cursor_key IS NOT NULL AND (
    b.surveyed_at_ms IS NULL OR b.upper_key IS NULL
    OR (json_array_length(b.cursor_key) = 1 AND json_type(b.cursor_key, '$[0]') = 'integer'
        AND json_type(b.upper_key, '$[0]') = 'integer' AND b.cursor_key ->> 0 > b.upper_key ->> 0)
)
ORDER BY what
LIMIT 10
