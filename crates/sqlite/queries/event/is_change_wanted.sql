-- Returns a row if any subscription requests changes of jobs (?1 'kind') or of batches ('dag').
SELECT 1 FROM milepost_change_source WHERE what = ?1
