-- Returns the job that holds a group; of several, the one with the lowest slot. ?1 group
SELECT job_id FROM milepost_group_slot WHERE group_key = ?1 ORDER BY slot LIMIT 1
