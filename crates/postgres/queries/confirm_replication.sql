-- Waits until a synchronous standby has all earlier commits, if there is one.
select milepost.confirm_replication()
