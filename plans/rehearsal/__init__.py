"""Tests with a clock as files describe them: suites, scenarios and steps. The runtime rehearses them."""
