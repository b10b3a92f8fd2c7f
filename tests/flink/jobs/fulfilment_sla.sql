-- Logistics: which shipments missed what the carrier promises, and what that is by carrier and warehouse.
SET 'pipeline.name' = 'fulfilment-sla';
SET 'table.local-time-zone' = 'UTC';

CREATE TABLE orders (
  order_id BIGINT,
  customer_id BIGINT,
  channel STRING,
  order_time TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'rows/orders.json', 'format' = 'json');

CREATE TABLE shipments (
  shipment_id BIGINT,
  order_id BIGINT,
  carrier STRING,
  warehouse STRING,
  shipped_at TIMESTAMP(3),
  delivered_at TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'rows/shipments.json', 'format' = 'json');

CREATE TABLE late_shipments (
  shipment_id BIGINT,
  order_id BIGINT,
  carrier STRING,
  hours_to_ship INT,
  hours_on_the_way INT,
  promised_hours INT,
  message STRING
) WITH ('connector' = 'print');

CREATE TABLE sla_by_carrier (
  carrier STRING,
  warehouse STRING,
  shipments BIGINT,
  delivered BIGINT,
  late BIGINT,
  late_percent DOUBLE,
  PRIMARY KEY (carrier, warehouse) NOT ENFORCED
) WITH ('connector' = 'print');

-- What the contracts say.
CREATE TEMPORARY VIEW carriers AS
SELECT * FROM (VALUES
  ('DHL', 48, 'Deutsche Post'),
  ('UPS', 36, 'United Parcel Service'),
  ('GLS', 72, 'General Logistics Systems')
) AS c (carrier, promised_hours, full_name);

CREATE TEMPORARY VIEW measured AS
SELECT
  s.shipment_id,
  s.order_id,
  s.carrier,
  s.warehouse,
  TIMESTAMPDIFF(HOUR, o.order_time, s.shipped_at) AS hours_to_ship,
  TIMESTAMPDIFF(HOUR, s.shipped_at, s.delivered_at) AS hours_on_the_way,
  s.delivered_at IS NOT NULL AS delivered,
  c.promised_hours,
  c.full_name
FROM shipments AS s
JOIN (SELECT order_id, MIN(order_time) AS order_time FROM orders GROUP BY order_id) AS o ON s.order_id = o.order_id
LEFT JOIN carriers AS c ON s.carrier = c.carrier;

EXECUTE STATEMENT SET BEGIN
INSERT INTO late_shipments
SELECT
  shipment_id,
  order_id,
  carrier,
  hours_to_ship,
  hours_on_the_way,
  promised_hours,
  CONCAT(full_name, ' needed ', CAST(hours_on_the_way AS STRING), ' h for ', CAST(shipment_id AS STRING))
FROM measured
WHERE delivered AND hours_on_the_way > promised_hours;

INSERT INTO sla_by_carrier
SELECT
  carrier,
  warehouse,
  COUNT(*),
  COUNT(*) FILTER (WHERE delivered),
  COUNT(CASE WHEN hours_on_the_way > promised_hours THEN 1 END),
  ROUND(100.0E0 * COUNT(CASE WHEN hours_on_the_way > promised_hours THEN 1 END) / COUNT(*), 1)
FROM measured
GROUP BY carrier, warehouse;
END;
