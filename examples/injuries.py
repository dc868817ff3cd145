"""Nothing missing: injuries by week, district and sex, exact where many people hide each other, noised elsewhere.

Run it with ``python examples/injuries.py``. The data are invented (``data/README.md``): a registry of injuries in
sport, of people who do not infect one another. The program publishes a table of 69 weeks, 14 districts and both sexes,
writes it to ``examples/out/injuries.parquet``, draws a week of it, and compares it with three other ways to publish.

It is one table about all weeks, in which a person counts once, at her *first* report. So its promise is about all 69
weeks together, and nothing has to be said about how weeks depend on each other; a second injury would not be counted.
Districts, sexes and weeks were listed beforehand. People whose first report lacks the district or the sex are in no
cell. Every run draws noise anew: in earnest a ledger, ``ledger=``, keeps the one table that was published.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import opendp.prelude as opendp
import pandas as pd

import pkdp_pipeline as pkdp

HERE = Path(__file__).resolve().parent
EPSILON, DELTA = 1.0, 1e-6
# p_max: 1 in 4,000 is hurt in a week, say surveys elsewhere; the best clue, a limp, makes the odds 200 times: 4.8 %.
# known: of the people in one cell, nobody outside the registry knows more than 3, or can bring more there.
ATTACKER = pkdp.AttackerModel(p_max=0.05, known=3, influence="active")
DISTRICTS = """
Alder, Birch, Cedar Bay, Dune, Elm Ridge, Fern, Gorse, Heath, Ivy Port, Juniper, Kelp, Larch, Maple, North Moor
"""
DOMAIN = {
    "week": pd.date_range("2024-05-20", "2025-09-08", freq="7D").strftime("%G-W%V").tolist(),
    "district": DISTRICTS.strip().split(", "),
    "sex": ["female", "male"],
}
FIRST = ["injured", "district", "sex"]  # of reports of the same day, one that has the district comes first


def published(injuries: pd.DataFrame, **how: object) -> pkdp.Release:
    once = {"unit": "person", "one_cell": "first", "order_by": FIRST, "undeclared": "absent"}
    return injuries.pkdp.histogram(list(DOMAIN), domain=DOMAIN, **once, **how)


def by_opendp(true: list[int]) -> list[int]:
    """Return true counts with OpenDP's geometric mechanism; that a person counts once is up to the caller."""
    opendp.enable_features("contrib")
    space = opendp.vector_domain(opendp.atom_domain(T="i64")), opendp.l1_distance(T="i64")
    return opendp.m.make_geometric(*space, scale=1 / EPSILON)(true)


def draw(release: pkdp.Release, week: str, sex: str, path: Path) -> None:
    """Draw a week of one sex: above without the noised counts, which is what k alone publishes, below with them."""
    from matplotlib.figure import Figure

    from pkdp_pipeline.display import figures
    from pkdp_pipeline.releases.printed import PublishedTable

    rows = release.table.query("week == @week and sex == @sex")
    keys, exact, counts = [(name,) for name in rows["district"]], [*rows["exact"]], [*rows["count"]]
    both = PublishedTable(columns=("district",), keys=tuple(keys), counts=tuple(counts), exact=tuple(exact))
    alone = replace(both, counts=tuple(n if sure else None for n, sure in zip(counts, exact, strict=True)))
    figure = Figure(figsize=(5.2, 7.2), layout="constrained")
    k, panels = release.certificate.mechanism.k, figure.subplots(2, 1, sharex=True)
    for axes, table, title in zip(panels, (alone, both), (f"k = {k} alone", f"k = {k}, noise below"), strict=True):
        figures.draw_counts(table, k, axes, margin=release.error.bound_95)
        axes.set_title(title, loc="left", pad=9, fontsize=axes.xaxis.label.get_size(), fontweight="bold")
    panels[0].set_xlabel("")
    figure.savefig(path, dpi=110)


def main() -> None:
    k = pkdp.smallest_k(ATTACKER, epsilon=EPSILON, delta=DELTA)  # before the file is opened
    noise = pkdp.GeometricNoise(EPSILON)
    injuries = pd.read_parquet(HERE / "data" / "injuries.parquet")
    injuries["week"] = pd.to_datetime(injuries["injured"]).dt.strftime("%G-W%V")
    release = published(injuries, k=k, noise=noise, below="noise", attacker=ATTACKER)
    print(release)
    (HERE / "out").mkdir(exist_ok=True)
    release.to_parquet(HERE / "out" / "injuries.parquet")
    draw(release, "2024-W28", "male", HERE / "out" / "injuries.png")

    # What follows is for those who may see the data: of the four tables one may be published, and no error.
    cells = pd.MultiIndex.from_product(DOMAIN.values(), names=DOMAIN)
    people = injuries.sort_values(FIRST).drop_duplicates("person")
    true = people.groupby(list(DOMAIN)).size().reindex(cells, fill_value=0).reset_index(drop=True)
    alone, noised = published(injuries, k=k, attacker=ATTACKER), published(injuries, noise=noise)
    everywhere, nowhere = pd.Series(True, index=true.index), pd.Series(False, index=true.index)
    print("\n                      missing  mean error  exact   promise")
    for name, counts, exact, promise in (
        (f"k = {k} alone", alone.table["count"], everywhere, "ε = 1, δ = 1e-6 against the declared attacker"),
        ("noise alone", noised.table["count"], nowhere, "ε = 1, δ = 0 against anyone"),
        (f"k = {k}, noise below", release.table["count"], release.table["exact"], "as k alone"),
        ("OpenDP, geometric", pd.Series(by_opendp(true.tolist())), nowhere, "as noise alone, if a person counts once"),
    ):
        error = (counts.fillna(0) - true).abs().mean()
        print(f"{name:22}{counts.isna().mean():7.1%}{error:12.3f}{(exact & counts.notna()).mean():7.1%}   {promise}")
    print(f"Of {len(true):,} cells. In the mean of errors a missing cell is read as 0. Publish one table, not several.")


if __name__ == "__main__":
    main()
