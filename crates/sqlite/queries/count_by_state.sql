-- Counts the jobs in each state.
SELECT state, count(*) FROM milepost_live GROUP BY state
UNION ALL
SELECT state, count(*) FROM milepost_ended GROUP BY state
