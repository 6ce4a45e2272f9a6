-- Who holds a group; of several, the first. ?1 group
SELECT job_id FROM milepost_group_slot WHERE group_key = ?1 ORDER BY slot LIMIT 1
