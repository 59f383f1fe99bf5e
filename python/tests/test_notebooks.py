"""The notebooks of `examples/` run in a short form, their code has types, and they are stored without outputs.

`python test_notebooks.py FOLDER` writes the code of each as a program into a folder, for mypy.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

#: The repository's folder; the environment says where it is if the tests were copied.
ROOT = Path(os.environ.get("HEADSTACK_ROOT", Path(__file__).resolve().parents[2]))
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))

#: Values of the parameters of each notebook for a run of seconds.
SHORT = {
    "1-first-steps": "REQUESTS = 200",
    "2-read-a-trace": "BURSTS = 3",
    "3-a-scheduling-idea": "REQUESTS = 60",
    "4-a-sweep-on-dask": "SEEDS, REQUESTS = 1, 20",
    "5-what-tune-says": 'REQUESTS, SECONDS, KNOBS = 100, 0.05, ("read_ahead_kb",)',
}

#: Modules that a notebook cannot do without.
NEEDS = {"4-a-sweep-on-dask": "distributed"}


def cells(path: Path, kind: str) -> list[Any]:
    """The cells of a kind."""
    return [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == kind]


def code(path: Path) -> str:
    """The code of a notebook as a program."""
    return "\n\n".join("".join(cell["source"]) for cell in cells(path, "code")) + "\n"


def has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def test_five_notebooks_are_stored_without_outputs() -> None:
    assert {path.stem for path in NOTEBOOKS} == set(SHORT)
    for path in NOTEBOOKS:
        for cell in cells(path, "code"):
            assert cell["outputs"] == [] and cell["execution_count"] is None, path.name
        parameters = [cell for cell in cells(path, "code") if "parameters" in cell["metadata"].get("tags", [])]
        assert len(parameters) == 1, path.name


def test_rust_in_a_notebook_is_that_of_the_tested_example() -> None:
    source = (ROOT / "crates/sim/examples/own_order.rs").read_text(encoding="utf-8")
    text = "".join("".join(cell["source"]) for cell in cells(ROOT / "examples/3-a-scheduling-idea.ipynb", "markdown"))
    block = text.split("```rust\n")[1].split("```")[0]
    assert len(block.splitlines()) > 5 and block.strip() in source


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path: Path, tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    needed = NEEDS.get(path.stem)
    if needed is not None and not has(needed):
        pytest.skip(f"{needed} is not installed")
    book = nbformat.read(path, as_version=4)
    book.cells = [cell for cell in book.cells if has("matplotlib") or "needs-matplotlib" not in cell.metadata.get("tags", [])]
    for cell in book.cells:
        if "parameters" in cell.metadata.get("tags", []):
            cell.source = SHORT[path.stem]
    nbclient.NotebookClient(book, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    assert outputs and all(output.output_type != "error" for output in outputs)
    if path.stem == "1-first-steps":
        pages = [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]
        assert "<table>" in pages[0], "the results are shown as tables"
        assert "<iframe" in pages[-1], "the report is shown as a page of its own"
        if has("matplotlib"):
            pictures = [output.data["image/png"] for output in outputs if "image/png" in output.get("data", {})]
            assert len(pictures) == 1 and len(pictures[0]) > 5000, "the figure is shown as a picture"


#: Objects that a notebook shows, each with a word of its table.
SHOWN = {
    "hs.Rig('workstation')": "Volumes",
    "hs.Drive('exos-x16')": "capacity",
    "hs.Rig('atlas-10k').run(load)": "iops",
    "hs.Rig('atlas-10k').run(load).requests": "rotational_latency_ns",
    "hs.Sweep(rigs='atlas-10k', loads=load, seeds=2)": "atlas-10k",
    "(sweep := hs.Sweep(rigs='atlas-10k', loads=load, seeds=2)).run('rows') and sweep.results('rows')": "p99_ms",
}


@pytest.mark.filterwarnings("default")
def test_objects_are_shown_as_tables(tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    head = "import headstack as hs\nload = hs.Fio(rw='randread', size='1g', number_ios=20)"
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in (head, *SHOWN)])
    nbclient.NotebookClient(book, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    for cell, word in zip(book.cells[1:], SHOWN.values(), strict=True):
        page = cell.outputs[-1].data["text/html"]
        assert "<table" in page and word in page, cell.source


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for notebook in NOTEBOOKS:
        name = "notebook_" + notebook.stem.replace("-", "_")
        (folder / f"{name}.py").write_text(code(notebook), encoding="utf-8")
