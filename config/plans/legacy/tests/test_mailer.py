import datetime

import pytest

from billing.config import Config
from billing.mailer import Outbox, address, subject_of, text_of


class Transport(object):
    def __init__(self):
        self.sent = []
        self.down = False

    def __call__(self, sender, recipient, text):
        if self.down:
            raise OSError("no route to host")
        self.sent.append((sender, recipient, text))


def test_text(invoice, config):
    assert text_of(invoice, config) == (
        "Dear Ada,\n\ninvoice 2024-0001 over €407.58 was due on 14.02.2024.\n\nbilling@example.com\n"
    )


def test_a_customers_own_template_keeps_its_percent_form(invoice, tmp_path):
    (tmp_path / "reminder.txt").write_text("%(number)s: 100%% %(amount)s {now}")
    config = Config({"templates": "."}, str(tmp_path))
    assert text_of(invoice, config) == "2024-0001: 100% €407.58 {now}"


def test_what_cannot_be_sent_waits(invoice, config):
    transport = Transport()
    outbox = Outbox(config, transport)
    transport.down = True
    assert outbox.remind(invoice, "ada@example.com") is False
    assert repr(outbox) == "<Outbox of billing@example.com: 1 failed>"
    assert outbox.retry() == 1
    transport.down = False
    assert outbox.retry() == 0
    assert [recipient for _, recipient, _ in transport.sent] == ["ada@example.com"]


def test_needs_an_address(invoice, config):
    with pytest.raises(ValueError, match="no address for Ada"):
        Outbox(config, Transport()).remind(invoice, None)


def test_subject(invoice):
    today = datetime.date(2024, 2, 17)
    assert subject_of(invoice, today) == "Reminder: invoice 2024-0001 (overdue by 3 days)"


def test_address():
    assert address("Ada Lovelace", "example.com") == "Ada Lovelace <ada.lovelace@example.com>"
