-- Counts the next ends that have too many successors for one transaction.
select counted, due_made from milepost.spread()
