-- Leaves an end to be counted later. ?1 batch, ?2 task, ?3 what it was, ?4 what it is, ?5 counted so far
INSERT INTO milepost_batch_spread (batch_id, task, was, state, position) VALUES (?1, ?2, ?3, ?4, ?5)
