-- Where the log ends; NULL when it is empty.
SELECT max(pos) FROM milepost_event
