-- Removes an ended task whose successors have all been counted. ?1 its position
DELETE FROM milepost_batch_spread WHERE pos = ?1
