-- Lists the limits of groups and classes, with the number of taken slots and of waiting jobs. A group that has a separate limit is not
-- counted with its class.
SELECT name, slots, per_second, burst, source,
       (SELECT full_at_us FROM milepost_group_bucket WHERE group_key = name),
       (SELECT reserved FROM milepost_group_bucket WHERE group_key = name),
       (SELECT count(*) FROM milepost_group_slot AS held
        WHERE held.group_key = name
           OR substr(held.group_key, 1, instr(held.group_key, ':')) || '*' = name
              AND NOT EXISTS (SELECT 1 FROM milepost_group_limit AS own WHERE own.name = held.group_key)),
       (SELECT count(*) FROM milepost_live INDEXED BY milepost_live_waiting
        WHERE group_key IS NOT NULL AND due_at_ms IS NOT NULL AND timed IS NULL
          AND (group_key = name
            OR substr(group_key, 1, instr(group_key, ':')) || '*' = name
               AND NOT EXISTS (SELECT 1 FROM milepost_group_limit AS own WHERE own.name = milepost_live.group_key)))
FROM milepost_group_limit ORDER BY name
