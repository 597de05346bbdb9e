"""The papers' tables and the settings that rebuild them, a module for each paper."""

from __future__ import annotations

from tfmann.papers.tables import collier2019, meng2018, mino2017, synthetic, tu2018

TABLES = {
    **collier2019.TABLES,
    **meng2018.TABLES,
    **mino2017.TABLES,
    **tu2018.TABLES,
    **synthetic.TABLES,
}
