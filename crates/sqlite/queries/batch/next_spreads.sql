-- Ended tasks whose successors are to be counted, oldest first. ?1 how many
SELECT pos, batch_id, task, was, state, position FROM milepost_batch_spread ORDER BY pos LIMIT ?1
