-- Counts the next queued ends, which have too many successors for one transaction.
select counted, due_made from milepost.spread()
