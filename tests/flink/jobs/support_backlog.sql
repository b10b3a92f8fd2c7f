-- The queue of a help desk: open tickets with their last message, load of agents, and first response times.
SET 'pipeline.name' = 'support-backlog';
SET 'table.exec.state.ttl' = '30 d';

CREATE TABLE tickets (
  ticket_id BIGINT,
  customer_id BIGINT,
  priority STRING,
  status STRING,
  agent STRING,
  subject STRING,
  opened_at TIMESTAMP(3),
  closed_at TIMESTAMP(3),
  PRIMARY KEY (ticket_id) NOT ENFORCED
) WITH (
  'connector' = 'filesystem',
  'path' = 'rows/tickets.json',
  'format' = 'json',
  'source.changelog' = 'upsert'
);

CREATE TABLE ticket_messages (
  message_id BIGINT,
  ticket_id BIGINT,
  author STRING,
  body STRING,
  sent_at TIMESTAMP(3)
) WITH ('connector' = 'filesystem', 'path' = 'rows/ticket_messages.json', 'format' = 'json');

CREATE TABLE agents (
  agent STRING,
  team STRING,
  shift STRING
) WITH ('connector' = 'filesystem', 'path' = 'rows/agents.json', 'format' = 'json');

CREATE TABLE queue (
  ticket_id BIGINT,
  priority STRING,
  headline STRING,
  waiting_for STRING,
  messages BIGINT,
  last_message TIMESTAMP(3),
  PRIMARY KEY (ticket_id) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE agent_load (
  agent STRING,
  team STRING,
  open_tickets BIGINT,
  solved BIGINT,
  urgent BIGINT,
  PRIMARY KEY (agent) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TABLE first_responses (
  ticket_id BIGINT,
  minutes INT,
  PRIMARY KEY (ticket_id) NOT ENFORCED
) WITH ('connector' = 'print');

CREATE TEMPORARY VIEW last_messages AS
SELECT ticket_id, author, body, sent_at, message_id
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY ticket_id ORDER BY sent_at DESC, message_id DESC) AS n
  FROM ticket_messages
)
WHERE n = 1;

EXECUTE STATEMENT SET BEGIN
INSERT INTO queue
SELECT
  t.ticket_id,
  t.priority,
  '[' || t.priority || '] ' || t.subject || COALESCE(': ' || m.body, ''),
  CASE WHEN m.author = 'customer' OR m.author IS NULL THEN 'us' ELSE 'customer' END,
  COALESCE(c.messages, 0),
  m.sent_at
FROM tickets AS t
LEFT JOIN last_messages AS m ON m.ticket_id = t.ticket_id
LEFT JOIN (SELECT ticket_id, COUNT(*) AS messages FROM ticket_messages GROUP BY ticket_id) AS c
  ON c.ticket_id = t.ticket_id
WHERE t.status <> 'solved';

INSERT INTO agent_load
SELECT
  COALESCE(t.agent, a.agent),
  COALESCE(MAX(a.team), '?'),
  COUNT(t.ticket_id) FILTER (WHERE t.status IN ('open', 'pending')),
  COUNT(t.ticket_id) FILTER (WHERE t.status = 'solved'),
  COUNT(t.ticket_id) FILTER (WHERE t.priority = 'P1' AND t.status <> 'solved')
FROM (SELECT * FROM tickets WHERE agent IS NOT NULL) AS t
FULL OUTER JOIN agents AS a ON t.agent = a.agent
GROUP BY COALESCE(t.agent, a.agent);

INSERT INTO first_responses
SELECT t.ticket_id, TIMESTAMPDIFF(MINUTE, t.opened_at, r.sent_at)
FROM tickets AS t
JOIN (
  SELECT ticket_id, MIN(sent_at) AS sent_at FROM ticket_messages WHERE author IN ('agent', 'bot') GROUP BY ticket_id
) AS r ON r.ticket_id = t.ticket_id
WHERE r.sent_at >= t.opened_at;
END;
