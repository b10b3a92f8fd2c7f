"""Settings of S3 that only Spark has: then workers do not read the files, and no value of a setting is shown."""

from __future__ import annotations

import pytest

from hintplan.runtime.connectors.filesystem.file_systems import _differs

KEYS = {"AWS_ACCESS_KEY_ID": "canary-id", "AWS_SECRET_ACCESS_KEY": "canary-secret"}
STORE = {"AWS_ENDPOINT_URL": "http://store:9000", "AWS_REGION": "eu-west-1"}
USUAL = {"endpoint": "", "path.style.access": "false", "aws.credentials.provider": "hadoop", "connection.maximum": "96"}
SET = {"access.key": "canary-id", "secret.key": "canary-secret"}
PLACE = {"endpoint": "http://store:9000", "path.style.access": "true", "endpoint.region": "eu-west-1"}


@pytest.mark.parametrize(
    ("found", "environment", "reason"),
    [
        ({}, {}, None),
        (SET, KEYS, None),
        ({**SET, **PLACE}, {**KEYS, **STORE}, None),
        ({**SET, "connection.maximum": "200", "vectored.read.max.merged.size": "2M"}, KEYS, None),
        ({"bucket.other.endpoint": "http://canary-store"}, {}, None),
        (SET, {}, "fs.s3a.access.key is set for Spark only"),
        ({**SET, "secret.key": "canary-other"}, KEYS, "fs.s3a.secret.key is set for Spark only"),
        ({**SET, "endpoint": "http://canary-store"}, KEYS, "fs.s3a.endpoint is set for Spark only"),
        ({"bucket.lake.endpoint": "http://canary-store"}, {}, "fs.s3a.bucket.lake.endpoint is set for Spark only"),
        ({"encryption.algorithm": "SSE-C"}, {}, "fs.s3a.encryption.algorithm is set for Spark only"),
        ({"assumed.role.arn": "canary-arn"}, {}, "fs.s3a.assumed.role.arn is set for Spark only"),
        ({}, KEYS, "fs.s3a.access.key of Spark differs from the environment"),
        (SET, {**KEYS, **STORE}, "fs.s3a.endpoint of Spark differs from the environment"),
    ],
)
def test_workers_read_from_s3_if_spark_is_configured_by_the_environment(
    found: dict[str, str], environment: dict[str, str], reason: str | None
) -> None:
    assert _differs({**USUAL, **found}, USUAL, environment, "lake") == reason
