"""The papers' tables: what each reports, and which settings rebuild it. A file a paper."""

from __future__ import annotations

from tfmann.report.systems import collier, meng, mino, synthetic, tu

TABLES = {
    **collier.TABLES,
    **meng.TABLES,
    **mino.TABLES,
    **tu.TABLES,
    **synthetic.TABLES,
}
