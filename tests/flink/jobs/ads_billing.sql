-- Bills advertisers: CPM campaigns by impressions, CPC campaigns by valid clicks, up to their budget.
SET 'pipeline.name' = 'ads-billing';
SET 'table.exec.state.ttl' = '2 d';

CREATE TABLE impressions (
  impression_id STRING,
  campaign_id INT,
  user_id BIGINT,
  placement STRING,
  price_micros BIGINT,
  shown_at TIMESTAMP(3),
  device ROW<os STRING, model STRING>,
  price AS CAST(price_micros AS DECIMAL(18, 6)) / 1000000
) WITH ('connector' = 'filesystem', 'path' = 'rows/impressions.json', 'format' = 'json');

CREATE TABLE clicks (
  click_id STRING,
  impression_id STRING,
  cost DECIMAL(10, 4),
  valid BOOLEAN,
  clicked_at TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'rows/clicks.json', 'format' = 'json');

CREATE TABLE campaigns (
  campaign_id INT,
  advertiser STRING,
  name STRING,
  daily_budget DECIMAL(10, 2),
  bid_type STRING,
  active BOOLEAN,
  PRIMARY KEY (campaign_id) NOT ENFORCED
) WITH ('connector' = 'filesystem', 'path' = 'rows/campaigns.json', 'format' = 'json');

CREATE TABLE campaign_bill (
  campaign_id INT,
  advertiser STRING,
  `day` STRING,
  units BIGINT,
  charge DECIMAL(38, 4),
  capped BOOLEAN,
  PRIMARY KEY (campaign_id, `day`) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE advertiser_bill (
  advertiser STRING,
  campaigns BIGINT,
  charge DECIMAL(38, 2),
  PRIMARY KEY (advertiser) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW charges AS
SELECT c.campaign_id, DATE_FORMAT(i.shown_at, 'yyyy-MM-dd') AS `day`, i.price AS charge
FROM impressions AS i
JOIN campaigns AS c ON i.campaign_id = c.campaign_id
WHERE c.bid_type = 'CPM'
UNION ALL
SELECT /*+ STATE_TTL('k' = '1 d', 'i' = '1 d') */
  c.campaign_id, DATE_FORMAT(k.clicked_at, 'yyyy-MM-dd'), k.cost
FROM clicks AS k
JOIN impressions AS i ON k.impression_id = i.impression_id
JOIN campaigns AS c ON i.campaign_id = c.campaign_id
WHERE c.bid_type = 'CPC' AND k.valid;

CREATE TEMPORARY VIEW billed AS
SELECT
  b.campaign_id,
  c.advertiser,
  b.`day`,
  b.units,
  LEAST(b.charge, CAST(c.daily_budget AS DECIMAL(38, 6))) AS charge,
  b.charge > c.daily_budget AS capped
FROM (SELECT campaign_id, `day`, COUNT(*) AS units, SUM(charge) AS charge FROM charges GROUP BY campaign_id, `day`) AS b
JOIN campaigns AS c ON b.campaign_id = c.campaign_id;

EXECUTE STATEMENT SET
BEGIN
  INSERT INTO campaign_bill
  SELECT campaign_id, advertiser, `day`, units, CAST(charge AS DECIMAL(38, 4)), capped FROM billed;

  INSERT INTO advertiser_bill
  SELECT advertiser, COUNT(DISTINCT campaign_id), CAST(SUM(charge) AS DECIMAL(38, 2)) FROM billed GROUP BY advertiser;
END;
