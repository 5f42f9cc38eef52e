"""No operation takes more calls, files or store reads than recorded."""

import pytest
from golden.record import recorded
from golden.walk import walks

RECORDED = recorded("walks")
SLACK = {
    "calls": 5,
    "file_changes": 2,
    "files": 1,
    "store_reads": 0,
}  # figures of pages vary with the clock


@pytest.fixture(scope="module")
def figures():
    return walks()


@pytest.mark.parametrize("operation", RECORDED)
def test_a_walk_is_no_longer_than_recorded(figures, operation):
    for name, limit in RECORDED[operation].items():
        assert figures[operation][name] <= limit + SLACK[name], name
