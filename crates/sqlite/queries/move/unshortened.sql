-- For each ended state, the first job in the order of ends whose history retention has not read yet, so far as it has
-- read any.
SELECT state, ended_at_ms, id
FROM (
    SELECT milepost_ended.state, milepost_ended.ended_at_ms, milepost_ended.id,
           row_number() OVER (PARTITION BY milepost_ended.state ORDER BY milepost_ended.ended_at_ms, milepost_ended.id) AS place
    FROM milepost_history
    JOIN milepost_ended ON milepost_ended.id = milepost_history.job_id AND milepost_ended.state = milepost_history.to_state
    WHERE milepost_history.pos > (SELECT pos FROM milepost_retention WHERE sort = 'history')
      AND (SELECT pos FROM milepost_retention WHERE sort = 'history') > 0
)
WHERE place = 1
