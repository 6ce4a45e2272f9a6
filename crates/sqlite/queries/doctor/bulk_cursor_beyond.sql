-- Bulk jobs whose cursor stands behind their last target, or though that is not known. Only single integers are compared:
-- other keys may have an order of their own.
SELECT count(*) OVER () AS count, b.job_id AS what,
       'stands at ' || b.cursor_key || ', its last target is ' || coalesce(b.upper_key, 'not known') AS detail
FROM milepost_bulk b
WHERE b.cursor_key IS NOT NULL AND (
    b.surveyed_at_ms IS NULL OR b.upper_key IS NULL
    OR (json_array_length(b.cursor_key) = 1 AND json_type(b.cursor_key, '$[0]') = 'integer'
        AND json_type(b.upper_key, '$[0]') = 'integer' AND b.cursor_key ->> 0 > b.upper_key ->> 0)
)
ORDER BY what
LIMIT 10
