-- Drops dead letters $1 for good. Who says so is noted by the caller.
select milepost.drop_dead($1, null)
