"""What ``hintplan bundle`` writes and refuses, and what its program says where it cannot run; without Spark."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import hintplan
from hintplan import compile_sql
from hintplan.plans.commands.root import root
from hintplan.runtime.bundle.program import program_text

pytestmark = [pytest.mark.part(of=4, fixture="bundle"), pytest.mark.usefixtures("worded_for_commands")]

ORDERS = """
CREATE TABLE orders (id BIGINT, customer BIGINT)
WITH ('connector' = 'filesystem', 'path' = 'orders', 'format' = 'json');
"""
COUNTS = """
CREATE TABLE counts (customer BIGINT, n BIGINT) WITH ('connector' = 'print');
INSERT INTO counts SELECT customer, COUNT(*) FROM orders GROUP BY customer;
"""
CUSTOMERS = """
CREATE TABLE customers (id BIGINT, name STRING) WITH ({options});
CREATE TABLE named (id BIGINT, name STRING) WITH ('connector' = 'print');
INSERT INTO named SELECT o.id, c.name FROM (SELECT *, PROCTIME() AS at FROM orders) AS o
JOIN customers FOR SYSTEM_TIME AS OF o.at AS c ON o.customer = c.id;
"""
REDIS = "'connector' = 'redis', 'host' = 'cache.example.com', 'key-pattern' = 'customer:{id}'"
POSTGRES = "'connector' = 'jdbc', 'url' = 'jdbc:postgresql://db.example.com/shop', 'table-name' = 'customers'"

Bundle = Callable[..., Result]


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bundle:
    """``bundle("--", "--once")`` bundles ``counts.json`` of the directory that the test is in."""
    monkeypatch.chdir(tmp_path)
    hintplan.dump(compile_sql(ORDERS + COUNTS, name="counts of orders"), "counts.json")

    def run(*words: str, plan: str = "counts.json") -> Result:
        return CliRunner().invoke(root, ["bundle", plan, *words])

    return run


def names(archive: str) -> set[str]:
    """What Python can import from the archive, and what else lies beside that."""
    with zipfile.ZipFile(archive) as found:
        return {name.partition("/")[0] for name in found.namelist() if ".dist-info/" not in name}


def program(archive: str = "counts.zip", *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, archive, *arguments],
        env={**os.environ, **more}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_the_archive_has_all_that_a_run_needs_and_neither_the_planner_nor_the_prompt(bundle: Bundle) -> None:
    done = bundle()
    assert done.exit_code == 0, done.output
    assert names("counts.zip") == {
        "__main__.py", "counts.json", "hintplan",
        "click", "jsonschema_rs", "markdown_it", "mdurl", "pygments", "rich", "sqlglot",
    }  # fmt: skip
    with zipfile.ZipFile("counts.zip") as found:
        assert found.read("counts.json") == Path("counts.json").read_bytes()
        assert found.read("__main__.py") == Path("counts_main.py").read_bytes()
        assert not [name for name in found.namelist() if name.endswith((".pyc", "/RECORD"))]
        licences = [name for name in found.namelist() if "licen" in name.lower()]
    assert {name.partition("-")[0] for name in licences} >= {"click", "rich", "sqlglot"}


def test_the_same_input_gives_the_same_bytes(bundle: Bundle) -> None:
    options = ("--", "--checkpoint", "state", "--allow-host", "a.example.com", "--allow-host", "b.example.com")
    assert bundle("-o", "one", *options).exit_code == 0
    os.utime("counts.json", (1, 1))
    assert bundle("-o", "two", *options).exit_code == 0
    for name in ("counts.zip", "counts_main.py"):
        assert Path("one", name).read_bytes() == Path("two", name).read_bytes()


@pytest.mark.parametrize("link", ["dist", "dist/counts.zip", "dist/counts_main.py", "dist/below"])
def test_nothing_is_written_through_a_link(bundle: Bundle, tmp_path_factory: pytest.TempPathFactory, link: str) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "precious").write_text("precious")
    place = Path(link)
    place.parent.mkdir(exist_ok=True)
    is_folder = "." not in link
    place.symlink_to(outside if is_folder else outside / "precious")
    done = bundle("-o", f"{link}/new" if link == "dist/below" else "dist")
    assert done.exit_code == 1
    assert "symbolic link" in str(done.exception)
    assert (outside / "precious").read_text() == "precious"
    assert [file.name for file in outside.iterdir()] == ["precious"]


def test_the_lines_for_spark_submit_name_the_application_and_the_files(bundle: Bundle) -> None:
    said = bundle("-o", "dist").stdout
    files = "--py-files dist/counts.zip dist/counts_main.py"
    assert f"  spark-submit --master URL --name 'counts of orders' {files}\n" in said
    assert f"  spark-submit --master URL --name 'counts of orders' --deploy-mode cluster {files}\n" in said
    assert "--packages" not in said
    assert f"for {sysconfig.get_platform()}" in said


def test_topics_need_a_package_of_spark(bundle: Bundle) -> None:
    topic = "'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'localhost:9092'"
    declared = f"WITH ({topic}, 'format' = 'json', 'scan.startup.mode' = 'earliest-offset');"
    sql = ORDERS.partition("WITH")[0] + declared + COUNTS
    hintplan.dump(compile_sql(sql, name="counts"), "counts.json")
    said = bundle().stdout
    assert "spark-submit --master URL --name counts --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4." in said


def test_a_file_with_a_definition_goes_along_and_other_files_are_named(bundle: Bundle) -> None:
    topic = (
        "'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'localhost:9092', 'format' = "
        "'protobuf', 'protobuf.message-class-name' = 'shop.Order', 'protobuf.descriptor-file' = 'defined/orders.desc', "
        "'scan.startup.mode' = 'earliest-offset', 'properties.ssl.truststore.location' = '/etc/trusted.pem', "
        "'properties.ssl.truststore.type' = 'PEM', 'properties.security.protocol' = 'SSL'"
    )
    sql = ORDERS.partition("WITH")[0] + f"WITH ({topic});" + COUNTS
    hintplan.dump(compile_sql(sql, name="counts"), "counts.json")
    refused = bundle()
    assert refused.exit_code == 1
    place = "tables.orders.options.protobuf.descriptor-file"
    assert f"{place}: the bundle takes defined/orders.desc along" in str(refused.exception)
    Path("defined").mkdir()
    Path("defined/orders.desc").write_bytes(b"defined")
    done = bundle()
    assert done.exit_code == 0, done.output
    assert "goes along:\n  defined/orders.desc\n" in done.stdout
    assert "files of tables on local disks: /etc/trusted.pem\n" in done.stdout
    with zipfile.ZipFile("counts.zip") as found:
        (packed,) = (name for name in found.namelist() if name.endswith("/orders.desc"))
        assert found.read(packed) == b"defined"
    # What was packed is read, whatever has become of the file.
    Path("defined/orders.desc").unlink()
    shutil.unpack_archive("counts.zip", "unpacked")
    code = "from hintplan.runtime.code_files import read_definition; print(read_definition('defined/orders.desc'))"
    read = subprocess.run([sys.executable, "-c", code], cwd="unpacked", env={**os.environ, "PYTHONPATH": ""},
                          capture_output=True, text=True, timeout=60, check=True)  # fmt: skip
    assert read.stdout == "b'defined'\n"


@pytest.mark.parametrize(
    ("options", "goes_along", "named"),
    [(REDIS, {"redis"}, "redis<9,>=5"), (POSTGRES, set(), "psycopg[binary,pool]<4,>=3.2")],
    ids=["in Python", "compiled"],
)
def test_drivers_in_python_go_along_and_compiled_ones_are_named(
    bundle: Bundle, options: str, goes_along: set[str], named: str
) -> None:
    hintplan.dump(compile_sql(ORDERS + CUSTOMERS.format(options=options), name="named"), "counts.json")
    hosts = ("--allow-host", "cache.example.com:6379", "--allow-host", "db.example.com:5432")
    done = bundle("--", *hosts)
    assert done.exit_code == 0, done.output
    assert names("counts.zip") >= goes_along
    assert not names("counts.zip") & {"psycopg", "psycopg_pool", "psycopg_binary"}
    where = "goes along:" if goes_along else "must be there, for the driver and on every worker:"
    section = done.stdout.partition(where)[2].partition(":\n")[0] + done.stdout.partition(where)[2].split("\n")[1]
    assert f"for the plan's connectors '{named}'" in section


def test_what_the_policy_file_allows_goes_along_as_options(bundle: Bundle) -> None:
    Path("hintplan.toml").write_text('[run]\nallow-env = ["TOKEN"]\nallow-host = ["db.example.com"]\n')
    assert bundle("--", "--policy", "hintplan.toml", "--allow-host=other", "--once").exit_code == 0
    (options,) = [node.value for node in ast.walk(tree("counts_main.py")) if named(node, "OPTIONS")]
    digest, *given = ast.literal_eval(options)
    assert digest.startswith("--expect=")
    assert given == ["--once", "--allow-host=db.example.com", "--allow-host=other", "--allow-env=TOKEN"]


def tree(path: str) -> ast.Module:
    """The program, read as a Python of long ago reads it."""
    return ast.parse(Path(path).read_text(encoding="utf-8"), feature_version=(3, 6))


def named(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name


def test_modules_of_the_users_go_along_as_a_whole(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("own/shop").mkdir(parents=True)
    for name in ("__init__.py", "rates.py", "table.csv"):
        Path("own/shop", name).write_text("")
    monkeypatch.syspath_prepend("own")
    done = bundle("--", "--allow-module", "shop.rates", "--allow-module", "xxhash")
    assert done.exit_code == 0, done.output
    with zipfile.ZipFile("counts.zip") as found:
        assert {"shop/__init__.py", "shop/rates.py", "shop/table.csv"} <= set(found.namelist())
    assert "xxhash, which is installed here, too, and not in the archive" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--", "--allow-module", "nowhere.rates"), "the module nowhere is allowed, and there is none here"),
        (("--", "--master", "yarn"), "spark-submit decides where a bundle runs: remove --master and --remote"),
        (("--", "--remote", "sc://host"), "spark-submit decides where a bundle runs: remove --master and --remote"),
        (("--", "--once", "--trigger", "5 s"), "--once processes the existing rows and stops; it has no --trigger"),
        (("--", "--expect", "0123456789abcdef"), "it is not the plan that was reviewed"),
        (("--", "--chekpoint", "state"), "--chekpoint"),
        (("--platform", "linux-s390x"), "is not one of 'linux-x86_64', 'linux-aarch64'"),
    ],
)
def test_what_a_run_would_refuse_is_refused(bundle: Bundle, words: tuple[str, ...], message: str) -> None:
    done = bundle(*words)
    assert done.exit_code != 0
    assert message in f"{done.output}{done.exception}".replace(
        "No such option '--chekpoint'", "No such option: --chekpoint"
    )
    assert not Path("counts.zip").exists()


def test_a_plan_that_is_none_or_of_another_format_is_refused(bundle: Bundle) -> None:
    assert "missing.json" in str(bundle(plan="missing.json").exception)
    text = Path("counts.json").read_text(encoding="utf-8")
    Path("counts.json").write_text(text.replace('"format": "1.0"', '"format": "9.0"'), encoding="utf-8")
    assert "9.0" in str(bundle().exception)
    assert "called after the file of its plan" in bundle(plan="-").output


def test_a_run_that_may_not_reach_what_it_reads_is_refused(bundle: Bundle) -> None:
    hintplan.dump(compile_sql(ORDERS + CUSTOMERS.format(options=REDIS), name="named"), "counts.json")
    assert "--allow-host cache.example.com" in str(bundle().exception)


@pytest.mark.slow
def test_the_program_refuses_another_plan_than_that_of_its_digest(bundle: Bundle) -> None:
    assert bundle("--", "--checkpoint", "state").exit_code == 0
    other = hintplan.dumps(compile_sql(ORDERS + COUNTS, config={"table.exec.state.ttl": "1 d"}))
    with zipfile.ZipFile("counts.zip") as old, zipfile.ZipFile("other.zip", "w") as new:
        for name in old.namelist():
            new.writestr(name, other if name == "counts.json" else old.read(name))
    Path("apart").mkdir()
    shutil.copy("counts_main.py", "apart")
    shutil.copy("other.zip", "apart/counts.zip")
    for path in ("other.zip", "apart/counts_main.py"):
        done = program(path)
        assert done.returncode == 1
        assert "it is not the plan that was reviewed" in done.stderr


@pytest.mark.slow
def test_more_options_come_after_those_of_the_bundle(bundle: Bundle) -> None:
    assert bundle("--", "--once").exit_code == 0
    done = program("counts.zip", "--trigger", "5 s")
    assert done.returncode == 64
    assert "--once processes the existing rows and stops; it has no --trigger" in done.stderr


@pytest.mark.slow
def test_the_program_says_what_is_not_right_where_it_is_started(tmp_path: Path) -> None:
    here = sysconfig.get_platform()
    alone, other = tmp_path / "a_main.py", tmp_path / "b_main.py"
    alone.write_text(program_text(name="a", options=[], platform=here))
    other.write_text(program_text(name="b", options=[], platform="linux-of-others"))
    done = program(str(alone))
    assert (done.returncode, done.stderr) == (
        1,
        f"a.zip is missing: pass it to spark-submit with --py-files, or put it into {tmp_path}\n",
    )
    done = program(str(other))
    assert (done.returncode, done.stderr) == (
        1,
        f"b.zip is for linux-of-others, not {here}: hintplan bundle has --platform\n",
    )


@pytest.mark.integration
def test_for_other_machines_the_wheel_of_theirs_is_fetched(bundle: Bundle) -> None:
    other = next(each for each in ("linux-x86_64", "linux-aarch64") if each != sysconfig.get_platform())
    machine = {"linux-x86_64": 0x3E, "linux-aarch64": 0xB7}[other]
    assert bundle("--platform", other).exit_code == 0
    with zipfile.ZipFile("counts.zip") as found:
        (compiled,) = [name for name in found.namelist() if name.endswith(".so")]
        assert int.from_bytes(found.read(compiled)[18:20], "little") == machine  # e_machine of ELF
    assert f'PLATFORM = "{other}"' in Path("counts_main.py").read_text()
