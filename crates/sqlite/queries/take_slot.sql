-- Takes the slot of a group for a job, when it is free. ?1 group, ?2 job
INSERT INTO group_slot (group_key, slot, job_id) VALUES (?1, 0, ?2) ON CONFLICT DO NOTHING
