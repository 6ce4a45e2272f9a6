-- The number of batches in each state, without child batches.
select state::text, count(*) from milepost.batch where parent_id is null group by state
