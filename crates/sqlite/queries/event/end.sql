-- Returns the last position of the log; NULL if it is empty.
SELECT max(pos) FROM milepost_event
