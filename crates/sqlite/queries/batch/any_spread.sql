-- Whether any end waits to be counted.
SELECT 1 FROM milepost_batch_spread LIMIT 1
