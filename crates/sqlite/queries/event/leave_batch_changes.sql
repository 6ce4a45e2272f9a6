-- Stops turning state changes of batches into events.
DROP TRIGGER IF EXISTS milepost_batch_history_recording
