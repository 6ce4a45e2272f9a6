id
select $$a;b$$, id from t join u on (t.id = u.id) where t.id > :cursor order by t.id limit :limit