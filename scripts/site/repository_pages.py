"""A hook of mkdocs: links of docs/ into the repository work on the site too.

On the web view of the repository, `../CONTRIBUTING.md` is a file. The site has such Markdown files
as pages below repository/, with their images and the examples; a link to a module leads to the API
reference. What is left, such as a folder, becomes plain text: the site does not know the address
of the repository, unless `repo_url` is set in mkdocs.yml.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
PREFIX = "repository/"  # of the site's copies of files outside docs/
FENCED = re.compile(r"(^```.*?^```|`[^`\n]+`)", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(?P<label>!?\[(?P<text>[^\]]*)\])\((?P<target>[^)\s]+)\)")
IMAGE = re.compile(r"(?<=src=\")(?P<target>[^\"]+)")


def on_files(files, config):
    """Adds the files outside docs/ of the navigation, and those to which pages link."""
    waiting = [(file.src_uri, file.content_string) for file in files.documentation_pages()]
    waiting += [_add(files, config, uri[len(PREFIX) :]) for uri in _navigation(config.nav)]
    while waiting:
        uri, text = waiting.pop()
        for target in _targets(text):
            path = _repository_path(uri, target)
            if _is_copied(path) and (ROOT / path).is_file() and PREFIX + path not in files.src_uris:
                waiting.append(_add(files, config, path))
    return files


def on_page_markdown(markdown, page, config, files):
    """Points the links of one page at the site's pages."""
    parts = FENCED.split(markdown)
    parts[::2] = [_rewrite(part, page.file.src_uri, config, files) for part in parts[::2]]
    return "".join(parts)


def _is_copied(path):
    outside = not path.startswith("docs/")
    return outside and (path.endswith((".md", ".png")) or path.startswith("examples/"))


def _navigation(entry):
    """Yields the pages of the navigation that are outside docs/."""
    if isinstance(entry, str):
        yield from [entry] if entry.startswith(PREFIX) else []
    else:
        for part in entry.values() if isinstance(entry, dict) else entry:
            yield from _navigation(part)


def _add(files, config, path):
    uri = PREFIX + path
    if path.endswith(".md"):
        text = (ROOT / path).read_text(encoding="utf-8")
        files.append(File.generated(config, uri, content=text))
        return uri, text
    files.append(File.generated(config, uri, abs_src_path=str(ROOT / path)))
    return uri, ""


def _targets(text):
    for part in FENCED.split(text)[::2]:
        for pattern in (LINK, IMAGE):
            targets = (match["target"].partition("#")[0] for match in pattern.finditer(part))
            yield from (target for target in targets if target and "://" not in target)


def _repository_path(uri, target):
    """Returns the path in the repository to which a link on the page `uri` leads."""
    source = uri[len(PREFIX) :] if uri.startswith(PREFIX) else f"docs/{uri}"
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), target))


def _rewrite(text, uri, config, files):
    def link(match):
        target, _, anchor = match["target"].partition("#")
        if not target or "://" in match["target"] or target.startswith("mailto:"):
            return match[0]
        path = _repository_path(uri, target)
        address = _address(uri, path, anchor, config, files)
        return f"{match['label']}({address})" if address else match["text"]

    def image(match):
        path = _repository_path(uri, match["target"])
        return match[0] if "://" in match[0] else _address(uri, path, "", config, files)

    return IMAGE.sub(image, LINK.sub(link, text))


def _address(uri, path, anchor, config, files):
    anchor = f"#{anchor}" if anchor else ""
    page = path[len("docs/") :] if path.startswith("docs/") else PREFIX + path
    module = path.removesuffix("/__init__.py").removesuffix(".py").replace("/", ".")
    reference = f"api/{module.split('.')[1]}.md" if module.startswith("tfmann.") else ""
    if reference in files.src_uris:
        page, anchor = reference, "" if module.count(".") == 1 else f"#{module}"
    if page in files.src_uris:
        return posixpath.relpath(page, posixpath.dirname(uri) or ".") + anchor
    if config.repo_url:
        return f"{config.repo_url.rstrip('/')}/blob/main/{path}{anchor}"
    return ""
