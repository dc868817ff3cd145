"""A marimo notebook: one day of flights, read lazily, published once however often its cells run.

marimo edit examples/recipes/notebook.py
"""

import marimo

app = marimo.App()


@app.cell
def _():
    import polars as pl

    import pkdp_pipeline as pkdp

    return pkdp, pl


@app.cell
def _(pkdp, pl):
    # Cells run again whenever something above them changes: with a ledger what is published is only replayed.
    ledger = pkdp.Ledger.open("ledger.sqlite", dataset="flights")
    flights = pl.scan_parquet("examples/data/flights_2013.parquet").filter(pl.col("date") == pl.date(2013, 1, 2))
    release = flights.pkdp.histogram(
        "carrier",
        unit="tailnum",
        missing_unit="drop",
        k=50,
        attacker=pkdp.AttackerModel(p_max=0.5),
        ledger=ledger,
        period="2013-01-02",
    )
    ledger.close()
    release  # noqa: B018  # the cell shows the table and its sentence
    return (release,)


@app.cell
def _(pl, release):
    pl.DataFrame(release).sort("count", descending=True)
    return ()


if __name__ == "__main__":
    app.run()
