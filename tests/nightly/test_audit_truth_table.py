"""Every architecture, tokenizer, adapter, kind of file and spelling: what leaks is found, and nothing else.

python -m pytest tests/nightly/test_audit_truth_table.py        (a quarter of an hour on two cores)
"""

import audit_cases
import pytest

from privaudit.verdict import FLAGGED


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("case", list(audit_cases.every_pair()), ids=str)
def test_a_leak_is_found_where_there_is_one(case, tmp_path):
    answer = audit_cases.answer(case, tmp_path)
    assert (answer == FLAGGED) == case.leaks, answer
