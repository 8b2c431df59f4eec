"""Check `file`: a file of the result exists, is not empty, has this content. No link is followed to it."""

from __future__ import annotations

import os

from scheduler.model import Check, FailureClass, FileCheck
from workers.plugins import CheckTree, Finding, Runner
from workers.verifiers.kinds import expect
from workers.workspace.beneath import Unsafe, open_beneath, parts
from workers.workspace.digest import file_digest


class FileVerifier:
    """Looks at one regular file in the clean copy of the result."""

    def verify(self, check: Check, tree: CheckTree, runner: Runner) -> Finding:  # noqa: ARG002
        """Accepts when the file is there and every condition holds; a bad path is a configuration failure."""
        rule = expect(check, FileCheck).file
        try:
            parts(rule.path)
        except Unsafe as error:
            return Finding(accepted=False, reason=error.message, failure=FailureClass.CONFIGURATION)
        try:
            handle = open_beneath(tree.path, rule.path)
        except Unsafe as error:
            return Finding(accepted=False, reason=error.message)
        except OSError as error:
            missing = isinstance(error, FileNotFoundError)
            return Finding(accepted=False, reason=f"{rule.path}: {'no such file' if missing else error.strerror}")
        size = os.fstat(handle).st_size
        digest = file_digest(handle)
        if rule.nonempty and size == 0:
            return Finding(accepted=False, reason=f"{rule.path} is empty")
        if rule.sha256 is not None and digest != rule.sha256:
            return Finding(accepted=False, reason=f"{rule.path} has sha256 {digest}, expected {rule.sha256}")
        return Finding(accepted=True, reason=f"{rule.path}: {size} bytes, sha256 {digest}")

    def title(self, check: Check) -> str:
        """One line for people."""
        return f"file {expect(check, FileCheck).file.path}"
