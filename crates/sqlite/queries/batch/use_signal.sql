-- Marks a signal as used. ?1 its position
UPDATE milepost_batch_signal SET state = 'used' WHERE pos = ?1
