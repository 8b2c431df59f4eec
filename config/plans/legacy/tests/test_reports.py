import datetime

from billing.invoices import Invoice, Line
from billing.money import Money
from billing.reports import by_customer, file_name, overdue, summary, write_csv

TODAY = datetime.date(2024, 3, 1)


def make(number, customer, day, cents=10000, paid_on=None):
    lines = [Line("Work", 1, Money(cents))]
    return Invoice(number, customer, datetime.date(2024, 1, day), lines, paid_on=paid_on)


def invoices():
    return [
        make("3", "Bob", 31),
        make("2", "Ada", 10),
        make("1", "Ada", 20, paid_on=TODAY),
        make("4", "Ada", 5),
    ]


def test_groups_in_the_order_of_numbers():
    groups = by_customer(invoices())
    assert {name: [one.number for one in group] for name, group in groups.items()} == {
        "Ada": ["1", "2", "4"],
        "Bob": ["3"],
    }


def test_overdue_is_what_is_late_and_unpaid():
    assert [one.number for one in overdue(invoices(), TODAY)] == ["4", "2"]


def test_summary():
    assert summary(invoices(), TODAY).splitlines() == [
        "Open invoices on 2024-03-01",
        "===========================",
        "Ada                    2      €238.00",
        "Bob                    1      €119.00",
        "2 of 4 are overdue (50.0%)",
    ]


def test_summary_of_nothing():
    assert summary([], TODAY, "None").splitlines()[-1] == "0 of 0 are overdue (0.0%)"


def test_csv_makes_its_folder(tmp_path):
    path = tmp_path / "out" / "all.csv"
    assert write_csv([make("1", 'A;"B"', 1), make("2", None, 1)], str(path)) == 2
    assert path.read_text().splitlines() == ["number;customer;gross", '1;"A;""B""";€119.00', "2;;€119.00"]


def test_csv_in_the_folder_where_we_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert write_csv([], "all.csv") == 0
    assert (tmp_path / "all.csv").read_text() == "number;customer;gross\n"


def test_file_name():
    assert file_name(TODAY) == "reports/2024-03-summary.txt"
