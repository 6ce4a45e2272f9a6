-- Limits group or class $1 to $2 slots and $3 starts a second with a burst of $4, given out in portions of $5;
-- $6: who says so, and no configuration where an operator did. $2 and $3 null: removes the limit. Answers whether
-- that was done; null: not now.
select milepost.put_group_limit($1, $2, $3, $4, $5, $6)
