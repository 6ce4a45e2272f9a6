-- Assigns the free slots of groups $1 to jobs that wait for them, without waiting for other transactions.
select milepost.hand_over($1, true)
