-- Whether batches have due tasks or uncounted ends, or new signals or waits to check (waits).
select exists (select from milepost.batch_spread) or exists (select from milepost.batch where due > 0 and stop is null) as work,
       exists (select from milepost.batch_signal where is_new) or exists (select from milepost.batch_wait where check_at <= now()) as waits
