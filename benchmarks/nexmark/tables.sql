-- The tables that the queries read. ${data} is the directory of the events, ${options} what an engine needs in addition.
-- The placeholder of the watermark is empty in queries without windows.

CREATE TABLE person (
  id BIGINT,
  name STRING,
  emailAddress STRING,
  creditCard STRING,
  city STRING,
  state STRING,
  `dateTime` TIMESTAMP(3),
  extra STRING${watermark}
) WITH ('connector' = 'filesystem', 'path' = '${data}/person', 'format' = 'parquet'${options});

CREATE TABLE auction (
  id BIGINT,
  itemName STRING,
  description STRING,
  initialBid BIGINT,
  reserve BIGINT,
  `dateTime` TIMESTAMP(3),
  expires TIMESTAMP(3),
  seller BIGINT,
  category BIGINT,
  extra STRING${watermark}
) WITH ('connector' = 'filesystem', 'path' = '${data}/auction', 'format' = 'parquet'${options});

CREATE TABLE bid (
  auction BIGINT,
  bidder BIGINT,
  price BIGINT,
  channel STRING,
  url STRING,
  `dateTime` TIMESTAMP(3),
  extra STRING${watermark}
) WITH ('connector' = 'filesystem', 'path' = '${data}/bid', 'format' = 'parquet'${options});

CREATE TABLE side_input (
  `key` BIGINT,
  `value` STRING
) WITH ('connector' = 'filesystem', 'path' = '${data}/side_input', 'format' = 'parquet'${options});
