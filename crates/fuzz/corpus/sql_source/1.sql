member_id
select f.member_id from follow f
  where f.topic_id = :topic and f.member_id > :cursor -- followers
  order by f.member_id limit :limit;