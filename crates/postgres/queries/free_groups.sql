-- Releases the group slots of jobs $1 and assigns them to waiting jobs.
select milepost.free_groups($1)
