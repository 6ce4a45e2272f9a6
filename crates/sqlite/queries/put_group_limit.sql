-- Limits a group or class; only an operator can replace an operator's limit. ?1 name, ?2 slots, ?3 starts a second, ?4 burst, ?5 source
INSERT INTO milepost_group_limit (name, slots, per_second, burst, source) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (name) DO UPDATE SET
    slots = excluded.slots, per_second = excluded.per_second, burst = excluded.burst, source = excluded.source
WHERE milepost_group_limit.source = excluded.source OR excluded.source = 'operator'
