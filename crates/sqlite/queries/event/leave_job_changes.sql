-- Leaves changes of jobs to history alone.
DROP TRIGGER IF EXISTS milepost_history_recording
