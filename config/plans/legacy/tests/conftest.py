"""What the tests share."""

import datetime

import pytest

from billing.config import Config
from billing.invoices import Invoice, Line
from billing.money import Money
from billing.storage import Storage


@pytest.fixture
def store(tmp_path):
    return Storage(str(tmp_path / "records"))


@pytest.fixture
def invoice():
    lines = [Line("Consulting", 3, Money(10000)), Line("Travel", 1, Money(4250))]
    return Invoice("2024-0001", "Ada", datetime.date(2024, 1, 15), lines)


@pytest.fixture
def config(tmp_path):
    return Config({}, str(tmp_path))
