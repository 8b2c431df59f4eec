# -*- coding: utf-8 -*-
"""Settings: a file of `key = value` lines, the environment, and defaults."""

import os

DEFAULTS = {
    "currency": "EUR",
    "data": "data",
    "due_days": "30",
    "sender": "billing@example.com",
    "templates": "",
}


class ConfigError(Exception):
    """A settings file that cannot be used."""


class Config(object):
    """Settings by name; `folder` is what relative paths are relative to."""

    def __init__(self, values, folder):
        self.values = values
        self.folder = folder

    def get(self, name, default=None):
        value = self.values.get(name)
        if value == None:
            value = DEFAULTS.get(name)
        if value == None:
            return default
        return value

    def number(self, name):
        text = self.get(name)
        try:
            return int(text)
        except:
            raise ConfigError("%s must be a number, not %r" % (name, text))

    def data_folder(self):
        return os.path.join(self.folder, self.get("data"))

    def template(self, name):
        """Path of a template: the customer's own if there is one, else None."""
        folder = self.get("templates")
        if not folder:
            return None
        path = os.path.join(self.folder, folder, "%s.txt" % name)
        if os.path.exists(path):
            return path
        return None


def read(path, environ=None):
    """Read a settings file; BILLING_X in the environment wins over x in the file."""
    if environ == None:
        environ = os.environ
    if not os.path.isfile(path):
        raise ConfigError("no settings file %s" % path)
    values = dict([(key, value) for key, value in _lines(path)])
    for key in set(list(values) + list(DEFAULTS)):
        value = environ.get("BILLING_%s" % key.upper())
        if value != None:
            values[key] = value
    return Config(values, os.path.dirname(path))


def _lines(path):
    handle = open(path, "r")
    try:
        for number, line in enumerate(handle):
            line = line.split("#")[0].strip()
            if not line:
                continue
            if "=" not in line:
                raise ConfigError("%s:%d: expected key = value" % (os.path.basename(path), number + 1))
            key, value = line.split("=", 1)
            yield key.strip(), value.strip()
    finally:
        handle.close()
