"""The papers' tables and the settings that rebuild them, a module for each paper."""

from __future__ import annotations

from tfmann.papers.tables import collier2019, meng2018, mino2017, synthetic, tu2018

# By the paper as its claims name it: its own tables, and those of ours with its systems.
PAPERS = {
    "Collier & Beel 2019": collier2019.TABLES,
    "Meng et al. 2018": meng2018.TABLES,
    "Mino et al. 2017": mino2017.TABLES,
    "Tu et al. 2018": tu2018.TABLES,
}
TABLES = {
    **{name: table for tables in PAPERS.values() for name, table in tables.items()},
    **synthetic.TABLES,
}
