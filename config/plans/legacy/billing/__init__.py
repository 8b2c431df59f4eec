# -*- coding: utf-8 -*-
"""Invoices: make them, keep them, report on them, remind people of them."""
