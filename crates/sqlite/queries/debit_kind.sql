-- Updates when the bucket of a kind is full. ?1 kind, ?2 full at
UPDATE milepost_kind_limit SET full_at_us = ?2 WHERE kind = ?1
