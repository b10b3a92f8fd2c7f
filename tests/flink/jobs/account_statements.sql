-- Statements: the balance after each booking by its number, and the place of a booking among those of its amount.
SET 'pipeline.name' = 'account-statements';
SET 'table.exec.state.ttl' = '30 d';

CREATE TABLE transactions (
  tx_id BIGINT,
  account_id STRING,
  merchant_id INT,
  amount DECIMAL(12, 2),
  currency STRING,
  country STRING,
  card_present BOOLEAN,
  booked_at TIMESTAMP(3),
  WATERMARK FOR booked_at AS booked_at - INTERVAL '5' MINUTE
) WITH ('connector' = 'filesystem', 'path' = 'rows/transactions.json', 'format' = 'json');

CREATE TABLE statements (
  account_id STRING,
  tx_id BIGINT,
  amount DECIMAL(12, 2),
  balance DECIMAL(38, 2),
  bookings BIGINT,
  before_it DECIMAL(12, 2)
) WITH ('connector' = 'print');

CREATE TABLE places (
  country STRING,
  tx_id BIGINT,
  place BIGINT
) WITH ('connector' = 'print');

EXECUTE STATEMENT SET BEGIN
INSERT INTO statements
SELECT account_id, tx_id, amount, SUM(amount) OVER w, COUNT(*) OVER w, LAG(amount) OVER w
FROM transactions
WINDOW w AS (PARTITION BY account_id ORDER BY tx_id);

INSERT INTO places
SELECT country, tx_id, RANK() OVER (PARTITION BY country ORDER BY amount)
FROM transactions
WHERE amount > 0;
END;
