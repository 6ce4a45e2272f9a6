-- The number of jobs in each state.
select state::text, count(*) from milepost.live group by state
union all
select state::text, count(*) from milepost.ended group by state
