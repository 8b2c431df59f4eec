# -*- coding: utf-8 -*-
"""Invoices: lines, totals, due dates, and their way into a Storage and back."""

import datetime

from billing.money import Money, total

OPEN, PAID, CANCELLED = "open", "paid", "cancelled"


class Line(object):
    """So many pieces of something at a price."""

    def __init__(self, text, count, price):
        self.text = text
        self.count = count
        self.price = price

    def amount(self):
        return self.price * self.count

    def __str__(self):
        return "%-20s %4d x %10s %12s" % (self.text, self.count, self.price, self.amount())


class Invoice(object):
    """What a customer owes, and whether it has been paid."""

    def __init__(self, number, customer, issued, lines=None, due_days=30, paid_on=None):
        if lines == None:
            lines = []
        self.number = number
        self.customer = customer
        self.issued = issued
        self.lines = lines
        self.due_days = due_days
        self.paid_on = paid_on

    def net(self):
        return total([line.amount() for line in self.lines])

    def gross(self, vat=19):
        return self.net() + self.net().percent(vat)

    def due(self):
        return self.issued + datetime.timedelta(days=self.due_days)

    def status(self, today):
        """`paid`, `open`, or `overdue by N days`."""
        if self.paid_on != None:
            return PAID
        late = (today - self.due()).days
        if late <= 0:
            return OPEN
        return "overdue by %d day%s" % (late, "" if late == 1 else "s")

    def __repr__(self):
        return "<Invoice %(number)s for %(customer)s>" % self.__dict__


def to_fields(invoice):
    """(name, value) pairs for Storage.save."""
    yield "number", invoice.number
    yield "customer", invoice.customer
    yield "issued", "%04d-%02d-%02d" % invoice.issued.timetuple()[:3]
    yield "due_days", invoice.due_days
    yield "paid_on", None if invoice.paid_on == None else invoice.paid_on.isoformat()
    yield "lines", [[line.text, line.count, line.price.cents] for line in invoice.lines]


def from_record(record):
    """The invoice in a record. A record that lacks something is a ValueError."""
    try:
        lines = [Line(text, count, Money(cents)) for text, count, cents in record["lines"]]
        paid_on = record.get("paid_on")
        return Invoice(
            record["number"],
            record["customer"],
            datetime.date.fromisoformat(record["issued"]),
            lines,
            record["due_days"],
            None if paid_on == None else datetime.date.fromisoformat(paid_on),
        )
    except:
        raise ValueError("not an invoice: %s" % (record,))
