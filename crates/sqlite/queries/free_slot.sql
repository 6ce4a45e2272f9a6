-- Gives the slot of a group back. ?1 group, ?2 the job that holds it
DELETE FROM group_slot WHERE group_key = ?1 AND slot = 0 AND job_id = ?2
