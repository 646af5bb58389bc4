"""The memory of the linear program, estimated before it is built."""

import pytest

from optpart.applications.training.bounds.costs import Costs
from optpart.applications.training.bounds.program import columns_of, program_excess
from optpart.applications.training.bounds.rows import Rows
from optpart.testing.choices import tiny_choices


@pytest.mark.parametrize("seed", range(10))
def test_the_columns_are_those_of_the_program(seed):
    choices = tiny_choices(seed)
    assert columns_of(choices) == Rows(Costs(choices)).columns


def test_what_fits_is_not_refused_and_what_does_not_is_said_in_words():
    choices = tiny_choices(0)
    assert not program_excess(choices, 2**40)
    assert program_excess(choices, 2**20).endswith("of 1 MiB allowed")
