# -*- coding: utf-8 -*-
"""Records on the disk: one JSON file each, written whole or not at all."""

import json
import os


class Damaged(Exception):
    """A file that is there and cannot be read."""


class Storage(object):
    """A folder of records by number, such as `2024-0001`."""

    def __init__(self, root):
        self.root = root
        if not os.path.isdir(root):
            os.makedirs(root)

    def path_of(self, number):
        if not number or os.path.basename(number) != number:
            raise ValueError("not a record number: %r" % number)
        return os.path.join(self.root, "%s.json" % number)

    def save(self, number, fields):
        """Write a record from (name, value) pairs. Whatever goes wrong, the old record stays."""
        path = self.path_of(number)
        temporary = path + ".tmp"
        handle = open(temporary, "w")
        try:
            record = {}
            for name, value in fields:
                record[name] = value
            json.dump(record, handle, indent=1, sort_keys=True)
            handle.close()
            os.rename(temporary, path)
        except:
            handle.close()
            os.unlink(temporary)
            raise

    def load(self, number):
        """The record, or None when there is none."""
        path = self.path_of(number)
        if not os.path.exists(path):
            return None
        handle = open(path, "r")
        try:
            return json.load(handle)
        except:
            raise Damaged("%s cannot be read" % os.path.basename(path))
        finally:
            handle.close()

    def numbers(self):
        """All record numbers, sorted."""
        found = []
        for name in os.listdir(self.root):
            if name.endswith(".json"):
                found.append(name[: -len(".json")])
        return sorted(found)

    def next_number(self, year):
        """The first free number of a year."""
        last = 0
        for number in self.numbers():
            if number.startswith("%d-" % year):
                last = max(last, int(number.split("-")[1]))
        return "%d-%04d" % (year, last + 1)
