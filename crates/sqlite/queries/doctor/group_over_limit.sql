-- Groups that are held by more jobs than they have slots.
SELECT count(*) OVER () AS count, w.group_key AS what,
       w.jobs || ' jobs have a slot, the limit is ' || coalesce(o.slots, c.slots, 1) AS detail
FROM (
    SELECT group_key, count(*) AS jobs FROM milepost_live
    WHERE group_key IS NOT NULL AND state IN ('pending', 'running', 'retry_wait')
    GROUP BY group_key HAVING count(*) > 1
) w
LEFT JOIN milepost_group_limit o ON o.name = w.group_key
LEFT JOIN milepost_group_limit c ON o.name IS NULL AND instr(w.group_key, ':') > 0
    AND c.name = substr(w.group_key, 1, instr(w.group_key, ':')) || '*'
WHERE w.jobs > CASE WHEN o.name IS NULL AND c.name IS NULL THEN 1 ELSE coalesce(o.slots, c.slots, w.jobs) END
ORDER BY what
LIMIT 10
