"""The site of the documentation: MkDocs builds it offline, with every page, and no link leads nowhere."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.docs import site


def test_the_site_has_every_page_and_each_link_leads_somewhere(tmp_path: Path) -> None:
    site.build(tmp_path / "site")
    built = {path.relative_to(tmp_path / "site").with_suffix(".md").as_posix() for path in tmp_path.rglob("*.html")}
    assert {path.relative_to(site.ROOT).as_posix() for path in site.documents()} <= built
    text = (tmp_path / "site/docs/sql/index.html").read_text(encoding="utf-8")
    loaded = re.findall(r'<(?:script|link)[^>]+(?:src|href)="(https?:[^"]+)', text)
    assert loaded == [], "a page loads nothing from elsewhere"


def test_a_link_to_no_anchor_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("# a\n\nOne.\n", encoding="utf-8")
    (tmp_path / "docs/b.md").write_text("# b\n\nTwo.\n", encoding="utf-8")
    (tmp_path / "docs/index.md").write_text("# c\n\n## s\n\n[a](../README.md) [b](b.md#nowhere)\n", encoding="utf-8")
    monkeypatch.setattr(site, "ROOT", tmp_path)
    with pytest.raises(subprocess.CalledProcessError):
        site.build(tmp_path / "site")


def test_a_page_that_the_index_leaves_out_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text("# c\n\n## s\n\nNothing.\n", encoding="utf-8")
    (tmp_path / "docs/b.md").write_text("# b\n", encoding="utf-8")
    monkeypatch.setattr(site, "ROOT", tmp_path)
    with pytest.raises(ValueError, match=r"must link each page once: docs/b\.md"):
        site.sections()


def test_llms_txt_has_each_page_with_its_first_paragraph() -> None:
    text = site.llms_text()
    for page in site.documents():
        name = page.relative_to(site.ROOT).as_posix()
        if name != "docs/index.md":
            (line,) = re.findall(rf"^- \[[^]]+\]\({re.escape(name)}\): (.+)$", text, re.MULTILINE)
            assert len(line) > 20, name


def test_a_page_of_a_folder_that_its_index_leaves_out_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docs/f").mkdir(parents=True)
    (tmp_path / "docs/index.md").write_text("# c\n\n## s\n\n[f](f/index.md)\n", encoding="utf-8")
    (tmp_path / "docs/f/index.md").write_text("# f\n\n[a](a.md)\n", encoding="utf-8")
    (tmp_path / "docs/f/a.md").write_text("# a\n", encoding="utf-8")
    monkeypatch.setattr(site, "ROOT", tmp_path)
    assert site.sections() == {"s": ["docs/f/index.md", "docs/f/a.md"]}
    (tmp_path / "docs/f/b.md").write_text("# b\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"docs/f/index\.md must link docs/f/b\.md"):
        site.sections()


def test_no_page_is_too_long_to_read_at_once() -> None:
    words = {page.relative_to(site.ROOT).as_posix(): len(page.read_text().split()) for page in site.documents()}
    assert {name: number for name, number in words.items() if number > 3000} == {}, "split it by task"
