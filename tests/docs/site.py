"""Builds a site of the documentation with MkDocs: every page, with links and anchors checked, and ``llms.txt``.

python -m tests.docs.site site/     # the order of the pages is that of docs/index.md

Nothing is published. The pages are the files of the repository: they are copied beside the examples that they link to,
and MkDocs refuses a link that leads nowhere.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
_LINK = re.compile(r"\]\(([^)#\s:]+)(?:#[^)\s]*)?\)")
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_ITEM = re.compile(r"^( *)(?=(?:[-*]|\d+\.) )", re.MULTILINE)


def links(page: Path) -> Iterator[str]:
    """Yield the relative links of ``page``, as paths from the root of the repository."""
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    for match in _LINK.finditer(text):
        target = (page.parent / match[1]).resolve()
        if target.is_relative_to(ROOT):
            yield target.relative_to(ROOT).as_posix()


def documents() -> list[Path]:
    """Return all pages in and below docs/, sorted."""
    return sorted((ROOT / "docs").rglob("*.md"))


def pages_of(folder: str) -> list[str]:
    """Return the pages of a folder of docs/: its index.md, then the others in the order of the links there."""
    index = ROOT / folder / "index.md"
    linked = dict.fromkeys(name for name in links(index) if name.startswith(f"{folder}/"))
    pages = {path.relative_to(ROOT).as_posix() for path in index.parent.glob("*.md")} - {f"{folder}/index.md"}
    missing = sorted(pages - linked.keys())
    if missing:
        raise ValueError(f"{folder}/index.md must link {', '.join(missing)}")
    return [f"{folder}/index.md", *(name for name in linked if name in pages)]


def sections() -> dict[str, list[str]]:
    """Return the pages by section, in the order of docs/index.md; ValueError if a page is in none or in two.

    docs/index.md links each page of docs/ and the index.md of each folder once. That index.md links its neighbours.
    """
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    parts = re.split(r"^## (.+)$", index, flags=re.MULTILINE)[1:]
    names: dict[str, list[str]] = {}
    for title, body in zip(parts[::2], parts[1::2], strict=True):
        targets = ((ROOT / "docs" / match[1]).resolve() for match in _LINK.finditer(body))
        listed_here = [target.relative_to(ROOT).as_posix() for target in targets]
        # A folder's own index.md lists its pages; a link to one of them is a shortcut.
        names[title] = [name for name in listed_here if not re.fullmatch(r"docs/[^/]+/(?!index\.md$).+\.md", name)]
    listed = [name for section in names.values() for name in section]
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md")} - {"docs/index.md"}
    pages |= {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*/index.md")}
    wrong = sorted(pages.symmetric_difference(name for name in listed if name.startswith("docs/")))
    twice = sorted({name for name in listed if listed.count(name) > 1})
    if wrong or twice:
        raise ValueError(f"docs/index.md must link each page once: {', '.join(wrong + twice)}")
    return {title: [page for name in section for page in _with_neighbours(name)] for title, section in names.items()}


def _with_neighbours(name: str) -> list[str]:
    return pages_of(name.removesuffix("/index.md")) if re.fullmatch(r"docs/[^/]+/index\.md", name) else [name]


def title_of(page: str) -> str:
    """Return the first heading of ``page``."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.search(r"^# (.+)$", text, re.MULTILINE)[1].replace("`", "")  # type: ignore[index]


def first_paragraph(page: str) -> str:
    """Return the paragraph below the first heading of ``page`` on one line, without links."""
    text = (ROOT / page).read_text(encoding="utf-8").split("\n# ", 1)[-1].partition("\n")[2]
    paragraph = next(part for part in text.strip().split("\n\n") if not part.startswith(("#", "```", "|", "<")))
    return " ".join(re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", paragraph).split())


def llms_text() -> str:
    """Return llms.txt (https://llmstxt.org): the name, a summary, and each page with its first paragraph."""
    lines = ["# hintplan", "", f"> {first_paragraph('README.md')}"]
    for title, pages in sections().items():
        lines += ["", f"## {title}", ""]
        lines += [f"- [{title_of(page)}]({page}): {first_paragraph(page)}" for page in pages]
    return "\n".join(lines) + "\n"


def build(site: Path) -> None:
    """Write the site to the directory ``site``; CalledProcessError if a link or an anchor leads nowhere."""
    listed = sections()
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory) / "pages"
        waiting = ["docs/index.md", *(page for pages in listed.values() for page in pages)]
        copied: set[str] = set()
        for name in waiting:
            if name in copied or not (ROOT / name).exists():
                continue
            copied.add(name)
            target = source / name
            if (ROOT / name).is_dir():
                _write_listing(ROOT / name, target)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            if name.endswith(".md"):
                target.write_text(_for_markdown(ROOT / name), encoding="utf-8")
                waiting += links(ROOT / name)
            else:
                shutil.copy(ROOT / name, target)
        config = Path(directory) / "mkdocs.yml"
        config.write_text(json.dumps(_configuration(source, site, listed)), encoding="utf-8")
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(config)]
        subprocess.run(command, check=True)
    (site / "llms.txt").write_text(llms_text(), encoding="utf-8")


def _write_listing(directory: Path, target: Path) -> None:
    """Write a page for a directory that a page links to: its README, or else the names of its files."""
    target.mkdir(parents=True, exist_ok=True)
    readme = directory / "README.md"
    if readme.exists():
        text = _for_markdown(readme)
    else:
        names = sorted(path.name for path in directory.iterdir() if path.is_file())
        text = f"# {directory.name}\n\n" + "".join(f"- `{name}`\n" for name in names)
    (target / "README.md").write_text(text, encoding="utf-8")


def _configuration(source: Path, site: Path, listed: dict[str, list[str]]) -> dict[str, object]:
    nav: list[object] = [{"Documentation": "docs/index.md"}]
    nav += [{title: _navigation(pages)} for title, pages in listed.items()]
    return {
        "site_name": "hintplan",
        "docs_dir": str(source),
        "site_dir": str(site.resolve()),
        "use_directory_urls": False,
        "theme": {"name": "readthedocs", "highlightjs": False, "navigation_depth": 4},
        "plugins": [],
        "nav": nav,
        "not_in_nav": "examples/\nbenchmarks/\n",
        "markdown_extensions": ["tables", "fenced_code", "sane_lists", "toc"],
        "validation": {
            "nav": {"omitted_files": "ignore"},
            "links": {"not_found": "warn", "anchors": "warn", "unrecognized_links": "warn"},
        },
    }


def _navigation(pages: list[str]) -> list[object]:
    """Return the entries for ``pages``; the pages of a folder are below the title of its index.md."""
    entries: list[object] = []
    for folder, group in itertools.groupby(pages, lambda page: Path(page).parent.as_posix()):
        of_folder: list[object] = [{title_of(page): page} for page in group]
        is_nested = re.fullmatch(r"docs/[^/]+", folder)
        entries += [{title_of(f"{folder}/index.md"): of_folder}] if is_nested else of_folder
    return entries


def _for_markdown(page: Path) -> str:
    """Return the text of ``page`` as Python-Markdown reads it: lists need an empty line above, and links a file."""
    lines: list[str] = []
    fenced = False
    for line in page.read_text(encoding="utf-8").split("\n"):
        fenced ^= line.lstrip().startswith("```")
        starts_item = not fenced and _ITEM.match(line)
        if starts_item and lines and lines[-1].strip() and not re.match(r" *([-*]|\d+\.) |  ", lines[-1]):
            lines.append("")
        lines.append(line if fenced else _LINK.sub(lambda match: _to_file(page, match), line))
    return "\n".join(lines)


def _to_file(page: Path, match: re.Match[str]) -> str:
    if not (page.parent / match[1]).is_dir():
        return match[0]
    return match[0].replace(match[1], f"{match[1].rstrip('/')}/README.md", 1)


if __name__ == "__main__":
    build(Path(sys.argv[1]))
