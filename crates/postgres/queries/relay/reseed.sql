-- Adopts the log for this server.
select milepost.reseed()
