-- A click belongs to the impression of the half hour before it, a conversion to the click of the hour before it.
SET 'pipeline.name' = 'click-attribution';

CREATE TABLE impressions (
  impression_id STRING,
  campaign_id INT,
  user_id BIGINT,
  placement STRING,
  price_micros BIGINT,
  shown_at TIMESTAMP(3),
  device ROW<os STRING, model STRING>,
  WATERMARK FOR shown_at AS shown_at - INTERVAL '1' MINUTE
) WITH ('connector' = 'filesystem', 'path' = 'rows/impressions.json', 'format' = 'json');

CREATE TABLE clicks (
  click_id STRING,
  impression_id STRING,
  cost DECIMAL(10, 2),
  valid BOOLEAN,
  clicked_at TIMESTAMP(3),
  WATERMARK FOR clicked_at AS clicked_at - INTERVAL '1' MINUTE
) WITH ('connector' = 'filesystem', 'path' = 'rows/clicks.json', 'format' = 'json');

CREATE TABLE conversions (
  conversion_id BIGINT,
  click_id STRING,
  revenue DECIMAL(10, 2),
  kind STRING,
  converted_at TIMESTAMP(3),
  WATERMARK FOR converted_at AS converted_at - INTERVAL '1' MINUTE
) WITH ('connector' = 'filesystem', 'path' = 'rows/conversions.json', 'format' = 'json');

CREATE TABLE attributed (
  impression_id STRING,
  campaign_id INT,
  os STRING,
  click_id STRING,
  seconds INT,
  cost DECIMAL(10, 2)
) WITH ('connector' = 'print');

CREATE TABLE click_results (
  click_id STRING,
  clicked_at TIMESTAMP(3),
  conversion_id BIGINT,
  kind STRING,
  revenue DECIMAL(10, 2)
) WITH ('connector' = 'print');

CREATE TABLE orphans (
  click_id STRING,
  cost DECIMAL(10, 2)
) WITH ('connector' = 'print');

CREATE TABLE campaign_hours (
  campaign_id INT,
  window_start TIMESTAMP(3),
  clicks BIGINT,
  cost DECIMAL(38, 2)
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW shown_and_clicked AS
SELECT i.impression_id, i.campaign_id, i.device.os AS os, i.shown_at, c.click_id, c.cost, c.valid, c.clicked_at
FROM impressions AS i
JOIN clicks AS c
  ON i.impression_id = c.impression_id
  AND c.clicked_at BETWEEN i.shown_at AND i.shown_at + INTERVAL '30' MINUTE;

EXECUTE STATEMENT SET BEGIN
INSERT INTO attributed
SELECT impression_id, campaign_id, os, click_id, TIMESTAMPDIFF(SECOND, shown_at, clicked_at), cost
FROM shown_and_clicked
WHERE valid;

INSERT INTO click_results
SELECT c.click_id, c.clicked_at, v.conversion_id, v.kind, v.revenue
FROM clicks AS c
LEFT JOIN conversions AS v
  ON c.click_id = v.click_id
  AND v.converted_at >= c.clicked_at
  AND v.converted_at < c.clicked_at + INTERVAL '1' HOUR
WHERE c.valid;

INSERT INTO orphans
SELECT c.click_id, c.cost
FROM clicks AS c
LEFT JOIN impressions AS i
  ON i.impression_id = c.impression_id
  AND i.shown_at BETWEEN c.clicked_at - INTERVAL '30' MINUTE AND c.clicked_at
WHERE i.impression_id IS NULL;

INSERT INTO campaign_hours
SELECT campaign_id, window_start, COUNT(*), SUM(cost)
FROM TABLE(TUMBLE(TABLE shown_and_clicked, DESCRIPTOR(clicked_at), INTERVAL '2' HOUR))
GROUP BY campaign_id, window_start, window_end;
END;
