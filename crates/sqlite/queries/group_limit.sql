-- Returns the limit with exactly this name. ?1 group or class
SELECT slots, per_second, burst FROM milepost_group_limit WHERE name = ?1
