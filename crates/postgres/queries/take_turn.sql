-- Takes the turn at retention, for at most a minute, so that a process that dies does not keep it. Returns the position at
-- which to continue.
update milepost.turn set until = now() + interval '1 minute' where name = 'retention' and until <= now() returning place
