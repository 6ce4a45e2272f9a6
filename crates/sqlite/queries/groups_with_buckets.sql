-- Groups of a name or class that have a bucket. ?1 group or class
SELECT group_key FROM milepost_group_bucket
WHERE group_key = ?1 OR substr(group_key, 1, instr(group_key, ':')) || '*' = ?1
