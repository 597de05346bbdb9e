"""Which settings a cell reads, to be compared with those that a function takes for it."""

from tfmann.config import HParams
from tfmann.models.seq2seq import make_cell


def watch_reads(monkeypatch, module):
    """Returns a set that gets the settings that `module`'s cells read, but not its checks of them.

    Args:
      monkeypatch: of the test.
      module: makes settings by `HParams`, and cells by `make_cell`.
    """
    read, of_cells = set(), []

    class Watched(HParams):
        def __getattribute__(self, key):
            if any(self is hparams for hparams in of_cells):
                read.add(key)
            return super().__getattribute__(key)

    def make(hparams, *arguments):
        of_cells.append(hparams)
        return make_cell(hparams, *arguments)

    monkeypatch.setattr(module, "HParams", Watched)
    monkeypatch.setattr(module, "make_cell", make)
    return read
