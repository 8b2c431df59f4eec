# -*- coding: utf-8 -*-
"""Reports over many invoices, as text and as CSV files."""

import os

from billing.money import total


def by_customer(invoices):
    """{customer: [invoice, ...]} in the order of their numbers."""
    result = {}
    for invoice in sorted(invoices, key=lambda one: one.number):
        result.setdefault(invoice.customer, []).append(invoice)
    return result


def overdue(invoices, today):
    """What is late, the latest first."""
    late = [one for one in invoices if one.paid_on == None and one.due() < today]
    return sorted(late, key=lambda one: (one.due(), one.number))


def summary(invoices, today, title=None):
    """A table of customers and what they owe."""
    if title == None:
        title = "Open invoices on %s" % today.isoformat()
    rows = [title, "=" * len(title)]
    for customer, group in sorted(by_customer(invoices).items()):
        unpaid = [one for one in group if one.paid_on == None]
        if unpaid:
            owed = total([one.gross() for one in unpaid])
            rows.append("%-20s %3d %12s" % (customer[:20], len(unpaid), owed))
    late = len(overdue(invoices, today))
    rows.append("%d of %d are overdue (%.1f%%)" % (late, len(invoices), _share(late, invoices)))
    return "\n".join(rows)


def write_csv(invoices, path):
    """Write `number;customer;gross`, making the folder when it is not there. Returns the number of rows."""
    folder = os.path.dirname(path)
    if folder and not os.path.isdir(folder):
        os.makedirs(folder)
    handle = open(path, "w")
    try:
        handle.write("number;customer;gross\n")
        for invoice in invoices:
            handle.write("%s;%s;%s\n" % (invoice.number, _cell(invoice.customer), invoice.gross()))
    finally:
        handle.close()
    return len(invoices)


def file_name(today, kind="summary", folder="reports"):
    """`reports/2024-03-summary.txt`"""
    return os.path.join(folder, "%d-%02d-%s.txt" % (today.year, today.month, kind))


def _cell(value):
    if value == None:
        return ""
    if ";" in value:
        return '"%s"' % value.replace('"', '""')
    return value


def _share(part, whole):
    try:
        return 100.0 * part / len(whole)
    except:
        return 0.0
