-- A page of group_slot. ?1 how many, ?2 after this group, ?3 and slot
SELECT group_key, slot, job_id FROM milepost_group_slot WHERE (group_key, slot) > (?2, ?3) ORDER BY group_key, slot LIMIT ?1
