-- Stops turning state changes of jobs into events.
DROP TRIGGER IF EXISTS milepost_history_recording
