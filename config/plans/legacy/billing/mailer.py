# -*- coding: utf-8 -*-
"""Reminders: the text of a mail, and an outbox that hands mails to a transport."""

REMINDER = (
    u"Dear %(customer)s,\n\n"
    u"invoice %(number)s over %(amount)s was due on %(due)s.\n\n"
    u"%(sender)s\n"
)


class Outbox(object):
    """Mails to send. `transport(sender, recipient, text)` sends one and raises when it cannot."""

    def __init__(self, config, transport):
        self.config = config
        self.transport = transport
        self.failed = []

    def remind(self, invoice, recipient):
        """Send a reminder. False when it could not be sent; it is kept for `retry`."""
        if recipient == None:
            raise ValueError("no address for %s" % invoice.customer)
        return self._send(recipient, text_of(invoice, self.config))

    def retry(self):
        """Try again what failed; returns how many are left."""
        waiting, self.failed = self.failed, []
        for recipient, text in waiting:
            self._send(recipient, text)
        return len(self.failed)

    def _send(self, recipient, text):
        try:
            self.transport(self.config.get("sender"), recipient, text)
        except:
            self.failed.append((recipient, text))
            return False
        return True

    def __repr__(self):
        return "<Outbox of %s: %d failed>" % (self.config.get("sender"), len(self.failed))


def text_of(invoice, config):
    """The text of a reminder, from the customer's own template when there is one."""
    path = config.template("reminder")
    template = REMINDER
    if path != None:
        handle = open(path, "r")
        template = handle.read()
        handle.close()
    return template % {
        "customer": invoice.customer,
        "number": invoice.number,
        "amount": invoice.gross(),
        "due": invoice.due().strftime("%d.%m.%Y"),
        "sender": config.get("sender"),
    }


def subject_of(invoice, today):
    """`Reminder: invoice 2024-0001 (overdue by 3 days)`"""
    return "Reminder: invoice %(number)s (%(status)s)" % {
        "number": invoice.number,
        "status": invoice.status(today),
    }


def address(name, host):
    """`Ada Lovelace <ada.lovelace@example.com>`"""
    return "%s <%s@%s>" % (name, name.lower().replace(" ", "."), host)
