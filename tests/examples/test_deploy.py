"""The files of examples/deploy are what those who read them take, by their own schemas; none was sent to a service."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import botocore.session
import click
import kubernetes_validate
import pytest
import yaml
from botocore.validate import ParamValidator
from databricks.bundles.jobs import Job
from kubeflow_spark_api.models import SparkV1beta2SparkApplication

from hintplan.plans.declarations.durations import parse_duration
from hintplan.runtime.run.command import run_command

DEPLOY = Path(__file__).parents[2] / "examples" / "deploy"
KUBERNETES = ("1.31", "1.34")


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / name).read_text(encoding="utf-8")))


def json_of(name: str) -> Any:
    return json.loads((DEPLOY / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("document", documents("job.yaml"), ids=lambda document: document["kind"])
def test_the_job_and_what_it_may_do_are_of_the_schemas_of_kubernetes(document: dict[str, Any], version: str) -> None:
    kubernetes_validate.validate(document, version, strict=True)


def test_the_spark_application_is_of_the_operators_schema() -> None:
    (application,) = documents("spark-application.yaml")
    found = SparkV1beta2SparkApplication.from_dict(application)
    assert found is not None
    assert found.to_dict() == application  # the model leaves out what it does not know


def test_what_one_document_names_is_in_another() -> None:
    """Names that no schema knows, which a cluster would find missing."""
    by_kind = {document["kind"]: document for document in documents("job.yaml")}
    account = by_kind["ServiceAccount"]["metadata"]["name"]
    binding, pod = by_kind["RoleBinding"], by_kind["Job"]["spec"]["template"]["spec"]
    (application,) = documents("spark-application.yaml")
    spec, (container,) = application["spec"], pod["containers"]
    assert binding["roleRef"]["name"] == by_kind["Role"]["metadata"]["name"]
    assert [(each["kind"], each["name"]) for each in binding["subjects"]] == [("ServiceAccount", account)]
    assert pod["serviceAccountName"] == spec["driver"]["serviceAccount"] == account
    text = " ".join(container["args"])
    assert set(re.findall(r"\$\((\w+)\)", text)) == {variable["name"] for variable in container["env"]}
    assert f"spark.kubernetes.container.image={container['image']} " in text
    assert container["image"] == spec["image"]
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    (version,) = re.findall(r"^FROM apache/spark:([0-9.]+)", dockerfile, re.MULTILINE)
    assert spec["sparkVersion"] == version
    (copied,) = (line.split()[1:] for line in dockerfile.splitlines() if line.startswith("COPY") and "revenue" in line)
    *files, folder = copied
    there = {folder.rstrip("/") + "/" + file.rpartition("/")[2] for file in files}
    named = {*re.findall(r"/opt/bundle/\S+", text)}
    assert (
        named
        == there
        == {path.removeprefix("local://") for path in (*spec["deps"]["pyFiles"], spec["mainApplicationFile"])}
    )


def test_a_pod_waits_longer_than_a_batch_may_take_to_end() -> None:
    by_kind = {document["kind"]: document for document in documents("job.yaml")}
    (application,) = documents("spark-application.yaml")
    waits = {
        "job.yaml": by_kind["Job"]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"],
        "spark-application.yaml": application["spec"]["driver"]["terminationGracePeriodSeconds"],
    }
    for name, seconds in waits.items():
        grace = run_command.make_context("run", ["revenue.json", *RUNS[name]]).params["grace"]
        assert parse_duration(grace) / 1000 + 30 <= seconds  # Spark takes a few seconds to end


def test_the_job_for_databricks_is_of_their_schema() -> None:
    job = json_of("databricks-job.json")
    assert Job.from_dict(job).as_dict() == job


def test_the_step_for_emr_is_of_their_schema() -> None:
    steps = botocore.session.get_session().get_service_model("emr").operation_model("AddJobFlowSteps").input_shape
    found = ParamValidator().validate({"JobFlowId": "j-1", "Steps": json_of("emr-step.json")}, steps)
    assert not found.has_errors(), found.generate_report()


def test_the_image_has_no_mistakes_that_hadolint_knows() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([hadolint, DEPLOY / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def arguments_of_runs() -> Iterator[tuple[str, list[str]]]:
    """What stands behind the program of a bundle, by the file that says it."""

    def behind(words: list[str]) -> list[str]:
        return words[next(i for i, word in enumerate(words) if word.endswith("_main.py")) + 1 :]

    (job,) = (document for document in documents("job.yaml") if document["kind"] == "Job")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    yield "job.yaml", behind(container["args"])
    yield "spark-application.yaml", documents("spark-application.yaml")[0]["spec"]["arguments"]
    (task,) = json_of("databricks-job.json")["tasks"]
    yield "databricks-job.json", task["spark_python_task"]["parameters"]
    (step,) = json_of("emr-step.json")
    yield "emr-step.json", behind(step["HadoopJarStep"]["Args"])


RUNS = dict(arguments_of_runs())


@pytest.mark.parametrize("arguments", RUNS.values(), ids=RUNS)
def test_what_they_give_the_program_are_options_of_a_run(arguments: list[str]) -> None:
    context = run_command.make_context("run", ["revenue.json", *arguments])
    assert isinstance(context, click.Context)
    assert context.params["checkpoint"].startswith("s3")


def test_the_image_has_the_versions_that_hintplan_asks_for() -> None:
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    project = (DEPLOY.parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    installed = shlex.split(dockerfile.partition("uv pip install ")[2].partition("\n")[0])
    for requirement in ("numpy>=1.26,<3", "pyarrow>=18"):
        assert requirement in installed
        assert f'"{requirement}"' in project
    (python,) = re.findall(r"uv venv --python (\S+)", dockerfile)
    assert tuple(map(int, python.split("."))) >= (3, 11)
