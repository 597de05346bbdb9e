"""A hook of mkdocs: figures that belong together stay on one line, in narrow cells too."""

from __future__ import annotations

import re

# a mean and its deviation; p values of one difference
TOGETHER = re.compile(r"\d ± \d|\bp (?:&lt; )?[01]\.\d+(?: / [01]\.\d+)?")


def on_page_content(html, page, config, files):
    """Makes the spaces within such figures unbreakable."""
    return TOGETHER.sub(lambda match: match[0].replace(" ", "\N{NO-BREAK SPACE}"), html)
