-- How many batches are in each state, without those that are tasks of others.
select state::text, count(*) from milepost.batch where parent_id is null group by state
