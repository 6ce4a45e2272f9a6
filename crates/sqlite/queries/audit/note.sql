-- Records an action. ?1 now, ?2 who, ?3 what, ?4 subject, ?5 why, ?6 detail (JSON)
INSERT INTO milepost_audit (at_ms, who, what, subject, why, detail) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
