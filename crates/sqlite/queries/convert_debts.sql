-- Converts the debts of the buckets that a limit of this name applies to, so that each keeps its number of missing tokens at a new rate. A
-- limit that may not be replaced changes nothing. ?1 group or class, ?2 starts a second after the change (NULL: the limit is removed, and
-- that of the class applies), ?3 now in microseconds, ?4 source
UPDATE milepost_group_bucket AS bucket
SET full_at_us = ?3 + CAST(min((bucket.full_at_us - ?3) * old.per_second / new.per_second, 3e18) AS INTEGER)
FROM milepost_group_limit AS old, (
    SELECT coalesce(?2, (
        SELECT per_second FROM milepost_group_limit WHERE name <> ?1 AND name = substr(?1, 1, instr(?1, ':')) || '*'
    )) AS per_second
) AS new
WHERE bucket.full_at_us > ?3 AND old.per_second <> new.per_second
  AND (bucket.group_key = ?1 OR old.name = ?1)
  AND (old.name = bucket.group_key
    OR old.name = substr(bucket.group_key, 1, instr(bucket.group_key, ':')) || '*'
       AND NOT EXISTS (SELECT 1 FROM milepost_group_limit AS own WHERE own.name = bucket.group_key))
  AND NOT EXISTS (SELECT 1 FROM milepost_group_limit AS held WHERE held.name = ?1 AND held.source = 'operator' AND ?4 <> 'operator')
