-- The number of notifications of each place in run ?1.
SELECT place_id, count(*) FROM milepost_demo_notification WHERE run = ?1 GROUP BY place_id
