-- An end is counted. ?1 its place
DELETE FROM milepost_batch_spread WHERE pos = ?1
