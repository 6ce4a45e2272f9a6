-- How many notifications each place got in run ?1.
SELECT place_id, count(*) FROM milepost_demo_notification WHERE run = ?1 GROUP BY place_id
