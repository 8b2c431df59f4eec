"""git and scratch workspaces: mirror, trees per slot, bases, results, the plan's branch, snapshots, inputs.

Must not know the store, RQ or the guard.
"""

from workers.workspace.base import MergeConflict, base_for
from workers.workspace.beneath import Unsafe, empty_folder, open_beneath, read_beneath, remove_tree
from workers.workspace.changes import Change
from workers.workspace.inputs import OUTPUTS_CAP, BadOutputs, parse_outputs, read_outputs, write_inputs
from workers.workspace.integrate import Integrated, integrate, publish
from workers.workspace.mirror import Mirror
from workers.workspace.results import Committed, ResultRefused, commit_result, result_message
from workers.workspace.snapshots import Snapshots
from workers.workspace.trees import Slot, SlotTaken, Tree, free_slot

__all__ = [
    "OUTPUTS_CAP",
    "BadOutputs",
    "Change",
    "Committed",
    "Integrated",
    "MergeConflict",
    "Mirror",
    "ResultRefused",
    "Slot",
    "SlotTaken",
    "Snapshots",
    "Tree",
    "Unsafe",
    "base_for",
    "commit_result",
    "empty_folder",
    "free_slot",
    "integrate",
    "open_beneath",
    "parse_outputs",
    "publish",
    "read_beneath",
    "read_outputs",
    "remove_tree",
    "result_message",
    "write_inputs",
]
