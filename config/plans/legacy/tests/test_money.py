import pytest

from billing.money import Money, parse, total


def test_prints_cents_with_two_digits():
    assert str(Money(1205)) == "€12.05"
    assert str(Money(-7, "USD")) == "-$0.07"


def test_repr_can_be_read_back():
    assert eval(repr(Money(5, "GBP"))) == Money(5, "GBP")


def test_is_never_equal_to_nothing_or_a_number():
    assert Money(0) != None  # noqa: E711
    assert Money(5) != 5
    assert Money(5) == Money(5)
    assert len({Money(5), Money(5), Money(5, "USD")}) == 2


@pytest.mark.parametrize("bad", [1.5, "1", True, None, (1, 2)])
def test_refuses_what_is_no_whole_number(bad):
    with pytest.raises(TypeError) as caught:
        Money(bad)
    assert str(caught.value) == f"cents must be a whole number, not {bad!r}"


def test_refuses_to_mix_currencies():
    with pytest.raises(ValueError, match="cannot add USD to EUR"):
        Money(1) + Money(1, "USD")


@pytest.mark.parametrize(("cents", "rate", "tax"), [(100, 19, 19), (50, 19, 10), (-50, 19, -10), (0, 19, 0)])
def test_percent_rounds_half_cents_away_from_zero(cents, rate, tax):
    assert Money(cents).percent(rate) == Money(tax)


@pytest.mark.parametrize(("text", "cents"), [("12.5", 1250), ("12", 1200), (" -0.05 ", -5)])
def test_parses_amounts(text, cents):
    assert parse(text) == Money(cents)


def test_says_what_is_no_amount():
    with pytest.raises(ValueError, match="not an amount: '1,50'"):
        parse("1,50", "EUR")


def test_total_of_nothing_is_zero():
    assert total([]) == Money(0)
    assert total([Money(1), Money(2)]) == Money(3)
