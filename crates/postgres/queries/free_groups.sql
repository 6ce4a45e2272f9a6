-- Frees the group slots of jobs $1 and hands them on.
select milepost.free_groups($1)
