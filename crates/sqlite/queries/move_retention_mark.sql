-- Records the position up to which a type of retention has read history. ?1 type, ?2 position
UPDATE milepost_retention SET pos = ?2 WHERE sort = ?1
