-- How many jobs are in each state.
SELECT state, count(*) FROM live GROUP BY state
UNION ALL
SELECT state, count(*) FROM ended GROUP BY state
