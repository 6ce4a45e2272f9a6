-- Takes the log as it is for this server's.
select milepost.reseed()
