-- Subscriptions whose positions refer to the log of another database.
select count(*) over () as count, s.name as what, 'its positions were stored in another database' as detail
from milepost.subscription s
where s.log_identity <> milepost.log_identity()
order by what
limit 10
