-- Leaves changes of batches to history alone.
DROP TRIGGER IF EXISTS milepost_batch_history_recording
