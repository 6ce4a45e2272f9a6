-- Counts the live jobs of each queue in each state.
SELECT queue, state, count(*) FROM milepost_live GROUP BY queue, state
