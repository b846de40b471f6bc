"""Pages that are tables say what the code, and the last measurement, say."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def generator() -> Any:
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["apis.md", "compatibility.md", "configuration.md"])
def test_a_generated_page_is_up_to_date(name: str) -> None:
    assert (DOCS / name).read_text() == generator().pages()[name], "run `make docs`"


@pytest.mark.parametrize("name", ["README.md", "docs/performance.md"])
def test_the_tables_inside_a_page_are_up_to_date(name: str) -> None:
    page = DOCS.parent / name
    text = page.read_text()
    assert "| Metadata |" in text or "| memory at rest (USS) |" in text
    assert text == generator().filled()[page], "run `make docs`"
