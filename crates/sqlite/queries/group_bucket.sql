-- Returns when the bucket of a group is full, and how many starts were reserved at the last check. ?1 group
SELECT full_at_us, reserved FROM milepost_group_bucket WHERE group_key = ?1
