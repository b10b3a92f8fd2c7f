-- The first message of each ticket, answers of people to customers, and tickets that wait.
SET 'pipeline.name' = 'first-replies';

CREATE TABLE ticket_messages (
  message_id BIGINT,
  ticket_id BIGINT,
  author STRING,
  body STRING,
  sent_at TIMESTAMP(3),
  WATERMARK FOR sent_at AS sent_at - INTERVAL '1' MINUTE
) WITH ('connector' = 'filesystem', 'path' = 'rows/ticket_messages.json', 'format' = 'json');

CREATE TABLE opened (
  ticket_id BIGINT,
  message_id BIGINT,
  author STRING,
  opened_at TIMESTAMP(3)
) WITH ('connector' = 'print');

CREATE TABLE opened_per_quarter (
  window_start TIMESTAMP(3),
  tickets BIGINT,
  by_bots BIGINT
) WITH ('connector' = 'print');

CREATE TABLE answers (
  ticket_id BIGINT,
  asked BIGINT,
  answered BIGINT,
  author STRING,
  minutes INT
) WITH ('connector' = 'print');

CREATE TABLE conversations (
  ticket_id BIGINT,
  started TIMESTAMP(3),
  messages BIGINT,
  authors BIGINT
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW first_messages AS
SELECT ticket_id, message_id, author, sent_at
FROM (
  SELECT ticket_id, message_id, author, sent_at, ROW_NUMBER() OVER (PARTITION BY ticket_id ORDER BY sent_at) AS n
  FROM ticket_messages
)
WHERE n = 1;

EXECUTE STATEMENT SET BEGIN
INSERT INTO opened
SELECT ticket_id, message_id, author, sent_at FROM first_messages;

INSERT INTO opened_per_quarter
SELECT window_start, COUNT(*), COUNT(*) FILTER (WHERE author = 'bot')
FROM TABLE(TUMBLE(TABLE first_messages, DESCRIPTOR(sent_at), INTERVAL '6' HOUR))
GROUP BY window_start, window_end;

INSERT INTO answers
SELECT q.ticket_id, q.message_id, a.message_id, a.author, TIMESTAMPDIFF(MINUTE, q.sent_at, a.sent_at)
FROM ticket_messages AS q
JOIN ticket_messages AS a
  ON a.ticket_id = q.ticket_id
  AND a.sent_at > q.sent_at
  AND a.sent_at < q.sent_at + INTERVAL '8' HOUR
WHERE q.author = 'customer' AND a.author <> 'customer';

INSERT INTO conversations
SELECT ticket_id, window_start, COUNT(*), COUNT(DISTINCT author)
FROM TABLE(SESSION(TABLE ticket_messages PARTITION BY ticket_id, DESCRIPTOR(sent_at), INTERVAL '6' HOUR))
GROUP BY ticket_id, window_start, window_end
HAVING COUNT(*) > 1;
END;
