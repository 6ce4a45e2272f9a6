-- Records how many successors of an ended task have been counted. ?1 its position, ?2 counted so far
UPDATE milepost_batch_spread SET position = ?2 WHERE pos = ?1
