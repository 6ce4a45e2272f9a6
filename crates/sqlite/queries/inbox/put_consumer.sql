-- Stores the settings of a consumer. ?1 its name, ?2 how long events wait, ?3 how many, ?4 what happens then, ?5 whether it begins anywhere
INSERT INTO milepost_inbox_consumer (consumer, gap_wait_ms, parked_max, gap_policy, begins_anywhere) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (consumer) DO UPDATE SET gap_wait_ms = excluded.gap_wait_ms, parked_max = excluded.parked_max,
    gap_policy = excluded.gap_policy, begins_anywhere = excluded.begins_anywhere
