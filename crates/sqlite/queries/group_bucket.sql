-- Returns when the bucket of a group is full. ?1 group
SELECT full_at_us FROM milepost_group_bucket WHERE group_key = ?1
