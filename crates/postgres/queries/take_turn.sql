-- Takes the turn at retention, for a minute at most: a process that dies with it does not keep it. Answers where to go on.
update milepost.turn set until = now() + interval '1 minute' where name = 'retention' and until <= now() returning place
