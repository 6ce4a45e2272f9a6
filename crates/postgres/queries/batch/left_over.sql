-- Whether batches have due tasks or uncounted ends.
select exists (select from milepost.batch_spread) or exists (select from milepost.batch where due > 0 and stop is null)
