-- Returns a row if any ended task waits for its successors to be counted.
SELECT 1 FROM milepost_batch_spread LIMIT 1
