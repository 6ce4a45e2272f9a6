-- The generation of batch $1.
select generation from milepost.batch where id = $1
