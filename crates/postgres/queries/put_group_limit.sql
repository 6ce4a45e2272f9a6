-- Limits group or class $1 to $2 slots and $3 starts per second with a burst of $4, given out in portions of $5; $6 source:
-- a configuration does not replace an operator's limit. $2 and $3 null: removes the limit. Returns whether anything was
-- done; null: not possible now.
select milepost.put_group_limit($1, $2, $3, $4, $5, $6)
