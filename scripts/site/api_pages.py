"""A hook of mkdocs: the API reference, one page for each package of tfmann."""

from __future__ import annotations

import ast
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]


def on_config(config):
    """Puts the pages where the navigation says `api/`."""
    pages = ["api/index.md", *({f"tfmann.{name}": f"api/{name}.md"} for name in _packages())]
    for section in config.nav:
        for entries in section.values():
            for entry in entries:
                if isinstance(entry, dict) and list(entry.values()) == ["api/"]:
                    entry[next(iter(entry))] = pages
    return config


def on_files(files, config):
    """Adds api/index.md and api/PACKAGE.md, which mkdocstrings fills."""
    index = [
        "# Python API",
        "",
        "`tfmann.load` and what it returns are stable. Other modules may change between releases.",
        "",
        "| package | contents |",
        "|---|---|",
    ]
    for package, modules in _packages().items():
        first = (ast.get_docstring(ast.parse(modules[0].read_text("utf-8"))) or "").split("\n\n")[0]
        summary = " ".join(first.split()).replace("|", "\\|")
        index.append(f"| [tfmann.{package}]({package}.md) | {summary} |")
        blocks = [_block(path, package) for path in modules]
        text = "\n\n".join([f"# tfmann.{package}", *blocks]) + "\n"
        files.append(File.generated(config, f"api/{package}.md", content=text))
    files.append(File.generated(config, "api/index.md", content="\n".join(index) + "\n"))
    return files


def _packages():
    top = ROOT / "tfmann"
    packages = {"api": [top / "api.py"], "errors": [top / "errors.py"]}
    for folder in sorted(path.parent for path in top.glob("*/__init__.py")):
        packages[folder.name] = sorted(folder.rglob("*.py"), key=_name)
    return packages


def _block(path, package):
    """Returns the directive for a module; that of the package has the page's title already."""
    name = _name(path)
    if name != f"tfmann.{package}":
        return f"::: {name}"
    options = ["    options:", "      show_root_heading: false", "      show_root_toc_entry: false"]
    return "\n".join([f"::: {name}", *options])


def _name(path):
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return name.removesuffix(".__init__")
