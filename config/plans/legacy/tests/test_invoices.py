import datetime

import pytest

from billing.invoices import Invoice, Line, from_record, to_fields
from billing.money import Money


def day(number):
    return datetime.date(2024, 2, number)


def test_adds_up(invoice):
    assert invoice.net() == Money(34250)
    assert invoice.gross() == Money(40758)
    assert invoice.gross(0) == Money(34250)


def test_lines_are_set_in_columns():
    assert str(Line("Travel", 2, Money(4250))) == "Travel                  2 x     €42.50       €85.00"


@pytest.mark.parametrize(
    ("today", "status"),
    [(day(14), "open"), (day(15), "overdue by 1 day"), (day(17), "overdue by 3 days")],
)
def test_status(invoice, today, status):
    assert invoice.status(today) == status


def test_paid_is_paid_however_late(invoice):
    invoice.paid_on = day(28)
    assert invoice.status(day(29)) == "paid"


def test_two_invoices_share_no_lines():
    first = Invoice("1", "Ada", day(1))
    first.lines.append(Line("x", 1, Money(1)))
    assert Invoice("2", "Bob", day(1)).lines == []


def test_repr_names_number_and_customer(invoice):
    assert repr(invoice) == "<Invoice 2024-0001 for Ada>"


def test_record_and_back(invoice):
    invoice.paid_on = day(9)
    record = dict(to_fields(invoice))
    assert record["issued"] == "2024-01-15"
    assert record["paid_on"] == "2024-02-09"
    assert dict(to_fields(from_record(record))) == record


def test_unpaid_record_and_back(invoice):
    record = dict(to_fields(invoice))
    assert record["paid_on"] is None
    assert from_record(record).paid_on is None


def test_says_what_is_no_invoice():
    with pytest.raises(ValueError, match="not an invoice: {'number': '1'}"):
        from_record({"number": "1"})
