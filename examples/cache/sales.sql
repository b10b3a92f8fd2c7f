-- One join that is worth keeping, and three results of it. A sale belongs to every price band of its day that its amount
-- lies in, so the join compares each sale with all bands of the day.

SET 'execution.runtime-mode' = 'batch';
SET 'parallelism.default' = '4';

CREATE TABLE sales (id BIGINT, `day` INT, amount INT) WITH (
  'connector' = 'datagen', 'number-of-rows' = '300000',
  'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '100000000',
  'fields.day.min' = '0', 'fields.day.max' = '99', 'fields.amount.min' = '0', 'fields.amount.max' = '99999'
);
CREATE TABLE bands (`day` INT, low INT) WITH (
  'connector' = 'datagen', 'number-of-rows' = '100000',
  'fields.day.min' = '0', 'fields.day.max' = '99', 'fields.low.min' = '0', 'fields.low.max' = '99999'
);

CREATE TABLE per_day (`day` INT, matches BIGINT, amount BIGINT, PRIMARY KEY (`day`) NOT ENFORCED) WITH (
  'connector' = 'jdbc', 'url' = 'jdbc:sqlite:sales.db', 'table-name' = 'per_day'
);
CREATE TABLE most_bands (id BIGINT, bands BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH (
  'connector' = 'jdbc', 'url' = 'jdbc:sqlite:sales.db', 'table-name' = 'most_bands'
);
CREATE TABLE widest (low INT, sales BIGINT, PRIMARY KEY (low) NOT ENFORCED) WITH (
  'connector' = 'jdbc', 'url' = 'jdbc:sqlite:sales.db', 'table-name' = 'widest'
);

CACHE LAZY TABLE matched OPTIONS('storageLevel' = 'MEMORY_AND_DISK') AS
SELECT s.id, s.`day`, s.amount, b.low
FROM sales AS s
JOIN bands AS b ON s.`day` = b.`day` AND s.amount >= b.low AND s.amount < b.low + 20;

INSERT INTO per_day SELECT `day`, COUNT(*), SUM(CAST(amount AS BIGINT)) FROM matched GROUP BY `day`;

INSERT INTO most_bands SELECT id, COUNT(*) AS n FROM matched GROUP BY id ORDER BY n DESC, id LIMIT 10;

INSERT INTO widest SELECT low, COUNT(DISTINCT id) AS n FROM matched GROUP BY low ORDER BY n DESC, low LIMIT 10;
