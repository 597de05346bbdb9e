"""The HTML templates of the pages, next to this module."""

from __future__ import annotations

from typing import Any

_GLOBALS = {  # no templates: inserted as they are
    "css": "page.css",
    "difference_css": "difference.css",
    "script": "page.js",
}


def render_template(name: str, **values: Any) -> str:
    """Renders a template; values are escaped, so that text of a corpus is shown and not run."""
    import jinja2
    from markupsafe import Markup

    from tfmann.visualization.drawing import without_overrides

    loader = jinja2.PackageLoader("tfmann.report")
    environment = jinja2.Environment(
        loader=loader,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: without_overrides(value) if type(value) is str else value,
    )
    for key, file in _GLOBALS.items():
        environment.globals[key] = Markup(loader.get_source(environment, file)[0])
    return environment.get_template(name).render(**values)
