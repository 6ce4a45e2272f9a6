-- At which generation batch $1 is.
select generation from milepost.batch where id = $1
