-- Notifies workers that batches have tasks to evaluate.
select milepost.wake_to_advance()
