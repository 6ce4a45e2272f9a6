-- Takes a slot of a group for a job if fewer slots than the limit are taken. ?1 group, ?2 job, ?3 the limit (NULL: none)
INSERT INTO milepost_group_slot (group_key, slot, job_id)
SELECT ?1, coalesce((SELECT max(slot) FROM milepost_group_slot WHERE group_key = ?1), 0) + 1, ?2
WHERE ?3 IS NULL OR (SELECT count(*) FROM milepost_group_slot WHERE group_key = ?1) < ?3
