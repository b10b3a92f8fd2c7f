"""Queries of a shop, after the shapes of TPC-H."""

from __future__ import annotations

from .tables import Program

SHOP: dict[str, Program] = {
    "shop: summary of lines": (
        "flag STRING, q INT, base BIGINT, net BIGINT, aq INT, n BIGINT",
        "SELECT flag, SUM(qty), SUM(price), SUM(price * (100 - off)), AVG(qty), COUNT(*) FROM lineitem WHERE shipped <= 150 GROUP BY flag",
    ),
    "shop: cheapest supplier": (
        "s STRING, n STRING, pk BIGINT",
        "SELECT s.name, n.n, p.pk FROM part AS p, supplier AS s, partsupp AS ps, nation AS n, region AS r "
        "WHERE p.pk = ps.pk AND s.sk = ps.sk AND p.kind LIKE '%BRASS' AND s.nk = n.nk AND n.rk = r.rk AND r.r = 'EUROPE' "
        "AND ps.cost = (SELECT MIN(x.cost) FROM partsupp AS x, supplier AS y, nation AS z, region AS w "
        "WHERE p.pk = x.pk AND y.sk = x.sk AND y.nk = z.nk AND z.rk = w.rk AND w.r = 'EUROPE')",
    ),
    "shop: revenue of open orders": (
        "ok BIGINT, rev BIGINT, d INT",
        "SELECT l.ok, SUM(l.price * (100 - l.off)), o.placed FROM customer AS c, orders AS o, lineitem AS l "
        "WHERE c.segment = 'BUILDING' AND c.ck = o.ck AND l.ok = o.ok AND o.placed < 140 AND l.shipped > 120 GROUP BY l.ok, o.placed",
    ),
    "shop: urgency of late orders": (
        "u STRING, n BIGINT",
        "SELECT urgency, COUNT(*) FROM orders WHERE placed >= 110 AND placed < 150 AND EXISTS "
        "(SELECT * FROM lineitem WHERE lineitem.ok = orders.ok AND due < received) GROUP BY urgency",
    ),
    "shop: local suppliers": (
        "n STRING, rev BIGINT",
        "SELECT n.n, SUM(l.price * (100 - l.off)) FROM customer AS c, orders AS o, lineitem AS l, supplier AS s, nation AS n, region AS r "
        "WHERE c.ck = o.ck AND l.ok = o.ok AND l.sk = s.sk AND c.nk = s.nk AND s.nk = n.nk AND n.rk = r.rk AND r.r = 'EUROPE' GROUP BY n.n",
    ),
    "shop: trade between nations": (
        "a STRING, b STRING, d INT, v BIGINT",
        "SELECT sn, cn, d, SUM(v) FROM (SELECT n1.n AS sn, n2.n AS cn, o.placed / 30 AS d, l.price * (100 - l.off) AS v "
        "FROM supplier AS s, lineitem AS l, orders AS o, customer AS c, nation AS n1, nation AS n2 "
        "WHERE s.sk = l.sk AND o.ok = l.ok AND c.ck = o.ck AND s.nk = n1.nk AND c.nk = n2.nk AND "
        "((n1.n = 'FRANCE' AND n2.n = 'GERMANY') OR (n1.n = 'GERMANY' AND n2.n = 'FRANCE'))) AS t GROUP BY sn, cn, d",
    ),
    "shop: market share": (
        "d INT, a BIGINT, b BIGINT",
        "SELECT d, SUM(CASE WHEN n = 'GERMANY' THEN v ELSE 0 END), SUM(v) FROM (SELECT o.placed / 30 AS d, l.price * (100 - l.off) AS v, n2.n AS n "
        "FROM part AS p, supplier AS s, lineitem AS l, orders AS o, customer AS c, nation AS n1, nation AS n2, region AS r "
        "WHERE p.pk = l.pk AND s.sk = l.sk AND l.ok = o.ok AND o.ck = c.ck AND c.nk = n1.nk AND n1.rk = r.rk AND r.r = 'EUROPE' "
        "AND s.nk = n2.nk AND o.placed BETWEEN 100 AND 155) AS t GROUP BY d",
    ),
    "shop: profit by nation": (
        "n STRING, d INT, p BIGINT",
        "SELECT n, d, SUM(a) FROM (SELECT n.n, o.placed / 30 AS d, l.price * (100 - l.off) - ps.cost * l.qty AS a "
        "FROM part AS p, supplier AS s, lineitem AS l, partsupp AS ps, orders AS o, nation AS n "
        "WHERE s.sk = l.sk AND ps.sk = l.sk AND ps.pk = l.pk AND p.pk = l.pk AND o.ok = l.ok AND s.nk = n.nk AND p.name LIKE '%green%') AS t GROUP BY n, d",
    ),
    "shop: important stock": (
        "pk BIGINT, v BIGINT",
        "SELECT ps.pk, SUM(ps.cost * ps.qty) FROM partsupp AS ps, supplier AS s, nation AS n WHERE ps.sk = s.sk AND s.nk = n.nk AND n.n = 'FRANCE' "
        "GROUP BY ps.pk HAVING SUM(ps.cost * ps.qty) * 4 > (SELECT SUM(x.cost * x.qty) FROM partsupp AS x, supplier AS y, nation AS z "
        "WHERE x.sk = y.sk AND y.nk = z.nk AND z.n = 'FRANCE')",
    ),
    "shop: modes of shipping": (
        "m STRING, high INT, low INT",
        "SELECT l.mode, SUM(CASE WHEN o.urgency = '1-URGENT' OR o.urgency = '2-HIGH' THEN 1 ELSE 0 END), "
        "SUM(CASE WHEN o.urgency <> '1-URGENT' AND o.urgency <> '2-HIGH' THEN 1 ELSE 0 END) FROM orders AS o, lineitem AS l "
        "WHERE o.ok = l.ok AND l.mode IN ('MAIL', 'SHIP') AND l.due < l.received AND l.shipped < l.due GROUP BY l.mode",
    ),
    "shop: customers by orders": (
        "c BIGINT, n BIGINT",
        "SELECT c, COUNT(*) FROM (SELECT customer.ck, COUNT(orders.ok) AS c FROM customer LEFT OUTER JOIN orders "
        "ON customer.ck = orders.ck AND orders.remark NOT LIKE '%special%requests%' GROUP BY customer.ck) AS t GROUP BY c",
    ),
    "shop: promotion": (
        "a BIGINT, b BIGINT",
        "SELECT SUM(CASE WHEN p.kind LIKE 'PROMO%' THEN l.price * (100 - l.off) ELSE 0 END), SUM(l.price * (100 - l.off)) "
        "FROM lineitem AS l, part AS p WHERE l.pk = p.pk AND l.shipped BETWEEN 110 AND 140",
    ),
    "shop: top supplier": (
        "sk BIGINT, t BIGINT",
        "WITH revenue AS (SELECT sk AS s, SUM(price * (100 - off)) AS t FROM lineitem WHERE shipped > 120 GROUP BY sk) "
        "SELECT supplier.sk, revenue.t FROM supplier, revenue WHERE supplier.sk = revenue.s AND revenue.t = (SELECT MAX(t) FROM revenue)",
    ),
    "shop: suppliers without complaints": (
        "b STRING, n BIGINT",
        "SELECT p.brand, COUNT(DISTINCT ps.sk) FROM partsupp AS ps, part AS p WHERE p.pk = ps.pk AND p.kind NOT LIKE 'SMALL X%' "
        "AND p.size IN (1, 2, 3, 5) AND ps.sk NOT IN (SELECT sk FROM supplier WHERE remark LIKE '%complaints%') GROUP BY p.brand",
    ),
    "shop: small orders of a part": (
        "p BIGINT",
        "SELECT SUM(l.price) FROM lineitem AS l, part AS p WHERE p.pk = l.pk AND p.brand = 'b1' "
        "AND l.qty < (SELECT AVG(x.qty) - 5 FROM lineitem AS x WHERE x.pk = p.pk)",
    ),
    "shop: large orders": (
        "n STRING, ok BIGINT, q INT",
        "SELECT c.name, o.ok, SUM(l.qty) FROM customer AS c, orders AS o, lineitem AS l WHERE o.ok IN "
        "(SELECT ok FROM lineitem GROUP BY ok HAVING SUM(qty) > 60) AND c.ck = o.ck AND o.ok = l.ok GROUP BY c.name, o.ok",
    ),
    "shop: alternatives with a common key": (
        "r BIGINT",
        "SELECT SUM(l.price * (100 - l.off)) FROM lineitem AS l, part AS p WHERE "
        "(p.pk = l.pk AND p.brand = 'b0' AND l.qty BETWEEN 1 AND 25 AND l.mode IN ('AIR', 'SHIP')) OR "
        "(p.pk = l.pk AND p.brand = 'b1' AND l.qty > 20 AND p.size < 6)",
    ),
    "shop: suppliers with stock": (
        "n STRING",
        "SELECT s.name FROM supplier AS s, nation AS n WHERE s.sk IN (SELECT ps.sk FROM partsupp AS ps WHERE ps.pk IN "
        "(SELECT pk FROM part WHERE name LIKE 'forest%') AND ps.qty * 2 > (SELECT SUM(l.qty) FROM lineitem AS l "
        "WHERE l.pk = ps.pk AND l.sk = ps.sk)) AND s.nk = n.nk AND n.n <> 'CHINA'",
    ),
    "shop: suppliers who kept orders waiting": (
        "n STRING, c BIGINT",
        "SELECT s.name, COUNT(*) FROM supplier AS s, lineitem AS l1, orders AS o, nation AS n WHERE s.sk = l1.sk AND o.ok = l1.ok "
        "AND o.status = 'F' AND l1.received > l1.due AND EXISTS (SELECT * FROM lineitem AS l2 WHERE l2.ok = l1.ok AND l2.sk <> l1.sk) "
        "AND NOT EXISTS (SELECT * FROM lineitem AS l3 WHERE l3.ok = l1.ok AND l3.sk <> l1.sk AND l3.received > l3.due + 10) "
        "AND s.nk = n.nk AND n.n <> 'CHINA' GROUP BY s.name",
    ),
    "shop: customers without orders": (
        "p STRING, n BIGINT, b BIGINT",
        "SELECT segment, COUNT(*), SUM(bal) FROM customer WHERE phone LIKE '_3-%' AND bal > "
        "(SELECT AVG(bal) FROM customer WHERE bal > 0) AND NOT EXISTS (SELECT * FROM orders WHERE orders.ck = customer.ck AND orders.placed > 130) GROUP BY segment",
    ),
}
