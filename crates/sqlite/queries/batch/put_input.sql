-- Stores the input ?2 of batch ?1.
INSERT INTO milepost_batch_input (batch_id, input) VALUES (?1, ?2)
