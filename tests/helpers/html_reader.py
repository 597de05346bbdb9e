"""Pages as a test reads them."""

from html.parser import HTMLParser

VOID = {"meta", "img", "br", "link", "input"}


class Reader(HTMLParser):
    """Checks that elements are closed as they were opened; keeps what points outside."""

    def __init__(self):
        super().__init__()
        self.open, self.links, self.text, self.ids = [], [], [], []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.links += [attributes[key] for key in ("src", "href") if key in attributes]
        self.ids += [attributes["id"]] if "id" in attributes else []
        if tag == "img":
            assert attributes["alt"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):  # of the drawings: <circle/>
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_data(self, data):
        self.text.append(data)


def read(page):
    """Reads a page that must be well formed and load nothing."""
    reader = Reader()
    reader.feed(page)
    assert not reader.open
    assert all(link.startswith(("#", "data:")) for link in reader.links), reader.links
    return reader
