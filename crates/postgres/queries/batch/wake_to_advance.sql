-- Tells workers that batches have something to be worked out.
select milepost.wake_to_advance()
