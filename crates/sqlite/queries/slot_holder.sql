-- Who holds a group. ?1 group
SELECT job_id FROM group_slot WHERE group_key = ?1 AND slot = 0
