-- Whether batches have something left to be worked out or counted.
select exists (select from milepost.batch_spread) or exists (select from milepost.batch where due > 0 and stop is null)
