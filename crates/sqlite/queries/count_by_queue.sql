-- How many live jobs each queue has in each state.
SELECT queue, state, count(*) FROM milepost_live GROUP BY queue, state
