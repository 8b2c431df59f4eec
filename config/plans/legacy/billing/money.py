# -*- coding: utf-8 -*-
"""Amounts of money in the smallest unit of a currency."""

import re

SYMBOLS = {"EUR": u"\u20ac", "GBP": u"\xa3", "USD": u"$"}

_AMOUNT = re.compile(r"^(-?)(\d+)(?:\.(\d{1,2}))?$")


class Money(object):
    """An amount in cents. It is never rounded but by `percent`."""

    def __init__(self, cents, currency="EUR"):
        if isinstance(cents, bool) or not isinstance(cents, int):
            raise TypeError("cents must be a whole number, not %r" % (cents,))
        if currency not in SYMBOLS:
            raise ValueError("unknown currency %s" % currency)
        self.cents = cents
        self.currency = currency

    def __eq__(self, other):
        if other == None or not isinstance(other, Money):
            return False
        return (self.cents, self.currency) == (other.cents, other.currency)

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash((self.cents, self.currency))

    def __add__(self, other):
        if self.currency != other.currency:
            raise ValueError("cannot add %s to %s" % (other.currency, self.currency))
        return Money(self.cents + other.cents, self.currency)

    def __mul__(self, count):
        return Money(self.cents * count, self.currency)

    def percent(self, rate):
        """`rate` percent of the amount, half cents away from zero."""
        scaled = abs(self.cents) * rate * 2 + 100
        cents = scaled // 200
        return Money(-cents if self.cents < 0 else cents, self.currency)

    def __str__(self):
        sign = "-" if self.cents < 0 else ""
        whole, rest = divmod(abs(self.cents), 100)
        return u"%s%s%d.%02d" % (sign, SYMBOLS[self.currency], whole, rest)

    def __repr__(self):
        return "Money(%d, %r)" % (self.cents, self.currency)


def parse(text, currency=None):
    """`12.50` as Money. Without a currency it is euros."""
    if currency == None:
        currency = "EUR"
    found = _AMOUNT.match(text.strip())
    if found == None:
        raise ValueError("not an amount: %r" % text)
    sign, whole, rest = found.groups()
    cents = int(whole) * 100 + int((rest or "0").ljust(2, "0"))
    return Money(-cents if sign else cents, currency)


def total(amounts, currency="EUR"):
    """The sum of a list; nothing is zero."""
    result = Money(0, currency)
    for amount in amounts:
        result = result + amount
    return result
