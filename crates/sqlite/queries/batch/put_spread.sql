-- Defers counting the successors of an ended task. ?1 batch, ?2 task, ?3 state before, ?4 state after, ?5 counted so far
INSERT INTO milepost_batch_spread (batch_id, task, was, state, position) VALUES (?1, ?2, ?3, ?4, ?5)
