import os

import pytest

from billing.storage import Damaged, Storage


def test_what_is_saved_can_be_loaded(store):
    store.save("2024-0001", [("customer", "Ada"), ("cents", 5)])
    assert store.load("2024-0001") == {"customer": "Ada", "cents": 5}
    assert store.load("2024-0002") is None


def test_an_error_while_saving_keeps_the_old_record(store):
    store.save("2024-0001", [("customer", "Ada")])
    with pytest.raises(TypeError):
        store.save("2024-0001", [("customer", object())])
    assert store.load("2024-0001") == {"customer": "Ada"}
    assert os.listdir(store.root) == ["2024-0001.json"]


def test_ctrl_c_while_saving_leaves_no_half_written_file(store):
    def fields():
        yield "customer", "Ada"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.save("2024-0001", fields())
    assert os.listdir(store.root) == []


def test_a_damaged_record_is_not_an_empty_one(store):
    path = os.path.join(store.root, "2024-0001.json")
    with open(path, "w") as handle:
        handle.write("{")
    with pytest.raises(Damaged, match="2024-0001.json cannot be read"):
        store.load("2024-0001")


@pytest.mark.parametrize("bad", ["", "../2024-0001", "a/b"])
def test_a_number_is_no_path(store, bad):
    with pytest.raises(ValueError, match="not a record number"):
        store.load(bad)


def test_numbers_go_on_within_a_year(store):
    assert store.next_number(2024) == "2024-0001"
    store.save("2023-0007", [])
    store.save("2024-0041", [])
    assert store.numbers() == ["2023-0007", "2024-0041"]
    assert store.next_number(2024) == "2024-0042"


def test_the_folder_is_made_when_it_is_not_there(tmp_path):
    Storage(str(tmp_path / "a" / "b"))
    assert (tmp_path / "a" / "b").is_dir()
