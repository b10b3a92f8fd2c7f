"""S3 as the environment says it, to pyarrow and to Spark alike, by the variables that AWS's own tools know.

    AWS_ENDPOINT_URL=http://store:9000  AWS_REGION=eu-west-1  AWS_ACCESS_KEY_ID=...  AWS_SECRET_ACCESS_KEY=...

Without an endpoint it is AWS; without keys, they are those of a profile or of the machine's role. Spark's file system
for S3 is Hadoop's, called s3a. Whoever is pickled by value may use this, for it uses nothing of hintplan's.

>>> settings({"AWS_ENDPOINT_URL": "http://store:9000"})["spark.hadoop.fs.s3a.path.style.access"]
'true'
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import pyarrow.fs as pafs

SCHEMES = ("s3", "s3a", "s3n")
ENDPOINT = "AWS_ENDPOINT_URL"
ACCESS_KEY = "AWS_ACCESS_KEY_ID"
VARIABLES = (
    f"{ENDPOINT}_S3",
    ENDPOINT,
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    ACCESS_KEY,
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
)
"""What workers elsewhere must have as the driver has it."""

_PROVIDERS = (
    "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider",
    "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
    "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider",
)
"""Keys that Spark has taken from the driver's environment, then what AWS's tools look at: environment, profile, role.
Hadoop's own list lacks profiles, and roles of a service account; pyarrow goes by them.
"""

_ATTEMPTS = 10
"""Of a request that the server refuses for now, or does not answer: that takes a minute or so."""


def is_s3(url: str) -> bool:
    """Whether ``url`` is in a bucket of S3."""
    return urlsplit(url).scheme in SCHEMES


def endpoint(environment: Mapping[str, str]) -> str | None:
    """The URL of the server; None if it is AWS."""
    return environment.get(f"{ENDPOINT}_S3") or environment.get(ENDPOINT) or None


def region(environment: Mapping[str, str]) -> str | None:
    """The region of the buckets; None if the environment does not say it."""
    return environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or None


def settings(environment: Mapping[str, str]) -> dict[str, str]:
    """What a Spark starts with that is to reach S3 as pyarrow does, unless it is configured otherwise; no secrets."""
    found = {"fs.s3a.aws.credentials.provider": ",".join(_PROVIDERS)}
    if (url := endpoint(environment)) is not None:
        # What pyarrow does with a server of one's own, whose name has no buckets below it.
        found |= {"fs.s3a.endpoint": url, "fs.s3a.path.style.access": "true"}
    if (name := region(environment)) is not None:
        found["fs.s3a.endpoint.region"] = name
    return {f"spark.hadoop.{key}": value for key, value in found.items()}


def s3_system() -> pafs.FileSystem:
    """S3 as the environment of this process says, with one request for a small file."""
    import pyarrow.fs as pafs

    return pafs.S3FileSystem(
        endpoint_override=endpoint(os.environ),
        region=region(os.environ),
        allow_delayed_open=True,
        retry_strategy=pafs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
    )
