"""The S3 configuration in the environment, for pyarrow and Spark, in the variables of AWS's own tools.

    AWS_ENDPOINT_URL=http://store:9000  AWS_REGION=eu-west-1  AWS_ACCESS_KEY_ID=...  AWS_SECRET_ACCESS_KEY=...

Without an endpoint, the server is AWS. Without keys, the keys of a profile or of the machine's role apply. Spark's file
system for S3 is Hadoop's s3a. Modules that are pickled by value may use this module, because it imports nothing of
hintplan.

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
"""The variables that workers on other machines need with the driver's values."""

_PROVIDERS = (
    "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider",
    "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
    "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider",
)
"""First the keys that Spark has taken from the driver's environment, then the sources of AWS's tools: environment,
profile, role. Hadoop's own list lacks profiles and roles of a service account, which pyarrow supports.
"""

_ATTEMPTS = 10
"""The attempts of a request that the server refuses temporarily or does not answer; together, they take about a minute.
"""


def is_s3(url: str) -> bool:
    """Return whether ``url`` is in an S3 bucket."""
    return urlsplit(url).scheme in SCHEMES


def endpoint(environment: Mapping[str, str]) -> str | None:
    """Return the URL of the server, or None for AWS."""
    return environment.get(f"{ENDPOINT}_S3") or environment.get(ENDPOINT) or None


def region(environment: Mapping[str, str]) -> str | None:
    """Return the region of the buckets, or None if the environment does not set it."""
    return environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or None


def settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return Spark settings to reach S3 as pyarrow does, without secrets; the user's configuration overrides them."""
    hadoop = {"fs.s3a.aws.credentials.provider": ",".join(_PROVIDERS)}
    if (url := endpoint(environment)) is not None:
        # As pyarrow does for a custom endpoint, whose host name has no subdomains for buckets.
        hadoop |= {"fs.s3a.endpoint": url, "fs.s3a.path.style.access": "true"}
    if (name := region(environment)) is not None:
        hadoop["fs.s3a.endpoint.region"] = name
    return {f"spark.hadoop.{key}": value for key, value in hadoop.items()}


def s3_system() -> pafs.FileSystem:
    """Open S3 as configured in the environment of this process, with one request for a small file."""
    import pyarrow.fs as pafs

    return pafs.S3FileSystem(
        endpoint_override=endpoint(os.environ),
        region=region(os.environ),
        allow_delayed_open=True,
        retry_strategy=pafs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
    )
