"""What a page of results shows."""

import re
from collections import defaultdict
from html import unescape


def tips(page):
    """The tips of the points of all curves, by the name of their line."""
    found = defaultdict(list)
    for group in page.split('<g class="line')[1:]:
        name, *points = re.findall("<title>(.*?)</title>", group.split("</g>")[0])
        found[unescape(name)] += points
    return found
