-- Entries of changes that no verb makes. ?1 the examination (JSON)
SELECT count(*) OVER () AS count, h.job_id AS what,
       'entry ' || h.pos || ' has verb ' || h.verb || ' from ' || coalesce(h.from_state, 'nothing') || ' to ' || h.to_state AS detail
FROM milepost_history h
WHERE (coalesce(h.from_state, ''), h.verb, h.to_state) NOT IN (
    SELECT coalesce(value ->> 'from_state', ''), value ->> 'verb', value ->> 'to_state' FROM json_each(?1, '$.graph')
)
ORDER BY h.pos
LIMIT 10
