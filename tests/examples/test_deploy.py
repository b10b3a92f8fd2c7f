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

from runtime.run.command import run_command

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
