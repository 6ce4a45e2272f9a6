-- An end is counted up to here. ?1 its place, ?2 counted so far
UPDATE milepost_batch_spread SET position = ?2 WHERE pos = ?1
