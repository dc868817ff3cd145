"""Figures 2 to 6 of the paper, with its printed bounds beside what is certified, and one for its Theorem 5.

Run it with ``python examples/paper_figures.py``. It writes PNG and SVG files to ``examples/out/paper/`` and says, in a
line for each, what it shows. It takes up to a minute and needs matplotlib (``pip install ".[report]"``).

"The paper" is *Differential privacy with partial knowledge* by Desfontaines, Mohammadi, Krahmer and Basin. The figures
are about the same questions; the parameters are ours, and every caption names them. Strong lines are certified: no
attacker that is declared exceeds them at the points that were computed; between these, lines are straight. Dotted
lines are exact: the δ of one attacker, enumerated. Dashed lines are printed bounds (`theory.printed`), and the
legend says which of them are wrong; ``docs/findings.md`` says why.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter
from numpy.typing import NDArray
from scipy import stats

import pkdp_pipeline as pkdp
from pkdp_pipeline.display.figures import style
from pkdp_pipeline.display.figures.style import dress
from pkdp_pipeline.model.wording import rounded_up
from pkdp_pipeline.theory import printed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OUT = Path(__file__).resolve().parent / "out" / "paper"
Values = NDArray[np.float64]
Kind = Literal["certified", "exact", "sound", "wrong", "noise"]
DASHES = ((0, (6, 2)), (0, (6, 2, 1.2, 2)), (0, (3, 1.6)), (0, (9, 2.5)))


@dataclass(frozen=True, slots=True)
class Line:
    """One curve. `group` joins what is about the same attackers: there, certified is at most what is sound."""

    label: str
    y: Values
    kind: Kind
    color: str = style.ACCENT
    group: str = ""
    width: float = 2.6


@dataclass(frozen=True, slots=True)
class Panel:
    """Curves over one axis; `limits` of y, and `ticks` of x where it runs from what is known least to most."""

    title: str
    x_title: str
    y_title: str
    x: Values
    lines: Sequence[Line]
    limits: tuple[float, float]
    log_x: bool = False
    ticks: tuple[Sequence[float], Sequence[str]] | None = None


@dataclass(frozen=True, slots=True)
class Drawn:
    """One figure: its panels, the caption below them, and what it shows in a line."""

    name: str
    caption: str
    shows: str
    panels: Sequence[Panel]


def exact_delta(law: Values, epsilons: Values) -> Values:
    """Return the δ of a count of which the attacker knows the others' law, in both directions."""
    at_least = np.append(law[::-1].cumsum()[::-1], 0.0)
    at_most = np.append(0.0, law.cumsum())
    rows = np.exp(epsilons)[:, None]
    right, left = at_least[:-1] - rows * at_least[1:], at_most[1:] - rows * at_most[:-1]
    return np.maximum(0.0, np.maximum(right.max(axis=1), left.max(axis=1)))


def coins(chances: Sequence[float]) -> Values:
    """Return the law of how many of these independent coins fall heads; every term is a sum of positive ones."""
    law = np.zeros(len(chances) + 1)
    law[0] = 1.0
    for done, chance in enumerate(chances, start=1):
        law[1 : done + 1] = law[1 : done + 1] * (1.0 - chance) + law[:done] * chance
        law[0] *= 1.0 - chance
    return law


def each(values: Values, bound: Callable[[float], float]) -> Values:
    return np.array([bound(value) for value in values.tolist()])


def figure_2(n: int = 10_000, least: float = 0.1, points: int = 60) -> Drawn:
    """δ against ε of an exact count: the paper's two cases, and fair coins."""
    x = np.linspace(0.01, 0.6, points)
    cases = [
        ("Case 1, one at λ, all others at 1/2", least, [least] + [0.5] * (n - 2)),
        ("Case 2, spread from λ to 1 − λ", least, np.linspace(least, 1 - least, n - 1).tolist()),
        ("All at 1/2, and λ = 1/2", 0.5, [0.5] * (n - 1)),
    ]
    panels = [_count_panel(title, n, low, chances, x) for title, low, chances in cases]
    at = int(np.argmin(np.abs(x - 0.2)))
    certified, _, closed, _, normal = (line.y[at] for line in panels[0].lines)
    return Drawn(
        "figure_2",
        f"An exact count of {n:,} people, λ = {least:g} in cases 1 and 2. The certificate and Theorem 3 are about "
        "every attacker to whom all others have a probability from λ to 1 − λ; Proposition 7 and the dotted line are "
        "about the probabilities of the case. For fair coins the numeric condition is below the truth.",
        f"an exact count of {n:,} people at ε = {x[at]:.2g}: certified δ = {rounded_up(certified, 1)}, Theorem 3's "
        f"closed form {rounded_up(closed, 1)}, Proposition 7 {rounded_up(normal, 1)}.",
        panels,
    )


def _count_panel(title: str, n: int, least: float, chances: Sequence[float], x: Values) -> Panel:
    box = pkdp.AttackerModel(p_min=least, p_max=1 - least, unknown=n - 1)
    closed = each(x, lambda e: printed.theorem_3_closed_form_delta(e, n, least))
    condition = each(x, lambda e: printed.theorem_3_condition(e, n, least))
    normal = each(x, lambda e: printed.proposition_7_delta(e, chances))
    lines = [
        Line("certified, all probabilities from λ to 1 − λ", pkdp.certify(pkdp.Count(), box).delta(x), "certified"),
        Line("exact, the probabilities of this case", exact_delta(coins(chances), x), "exact"),
        Line("Theorem 3, closed form", closed, "sound", style.SERIES[2]),
        Line("Theorem 3, numeric condition (no valid bound)", condition, "wrong", style.WARN),
        Line("Proposition 7, for this case", normal, "sound", style.SERIES[3], "this case"),
    ]
    return Panel(title, "ε", "δ", x, lines, (1e-14, 1.0))


def figure_3(delta: float = 1e-6, most: float = 6.0, points: int = 9) -> Drawn:
    """ε at one δ against the number of people, for several λ."""
    x = np.unique(np.logspace(2, most, points).round())
    lines = []
    for least, color in zip((0.01, 0.1, 0.5), (style.SERIES[2], style.ACCENT, style.SERIES[3]), strict=True):
        boxes = [pkdp.AttackerModel(p_min=least, p_max=1 - least, unknown=int(n) - 1) for n in x]
        epsilons = np.array([pkdp.certify(pkdp.Count(), box).epsilon(delta) for box in boxes])
        closed = each(x, lambda n, least=least: printed.theorem_3_closed_form(delta, int(n), least))
        lines.append(Line(f"certified, λ = {least:g}", epsilons, "certified", color, f"{least:g}"))
        lines.append(Line(f"Theorem 3, closed form, λ = {least:g}", closed, "sound", color, f"{least:g}"))
    certified, closed = (line.y[-1] for line in lines[2:4])
    return Drawn(
        "figure_3",
        f"ε at δ = {rounded_up(delta)} of an exact count of n people whose probabilities are from λ to 1 − λ. The "
        "closed form is stated for ε up to 1 only. Where people are few no ε is certified: the chance that all others "
        "agree is larger than δ.",
        f"ε at δ = {rounded_up(delta)} against the number of people: for {x[-1]:,.0f} and λ = 0.1 certified "
        f"{rounded_up(certified, 2)}, closed form {rounded_up(closed, 2)}.",
        [Panel("", "people, n (log scale)", "ε", x, lines, (4e-3, 4.0), log_x=True)],
    )


def passive_delta(n: int, p: float, known: int, k: int, epsilon: float) -> float:
    """Return the exact δ of a thresholded count to whom `known` of n - 1 others are known, all with probability p."""
    law, growth = stats.binom.pmf(np.arange(n - known), n - 1 - known, p), math.exp(epsilon)
    at_least = np.append(law[::-1].cumsum()[::-1], [0.0, 0.0])
    at_most = np.append(0.0, law.cumsum())
    right, left = at_least[:-2] - growth * at_least[1:-1], at_most[1:] - growth * at_most[:-1]
    total = np.zeros(2)
    for b, chance in enumerate(stats.binom.pmf(np.arange(known + 1), known, p)):
        cutoff = max(k - 1 - b, 0)
        for side, differences in enumerate((right, left)):
            total[side] += chance * max(0.0, differences[cutoff:].max(initial=0.0))
    return float(total.max())


def figure_4(n: int = 1_000, p: float = 0.01, known: int = 100, epsilon: float = 0.5, most: int = 45) -> Drawn:
    """A thresholded count: Theorem 4 against the threshold, without and with passive knowledge."""
    k = np.arange(math.ceil(1.4 * n * p), most + 1.0)

    def certified(at_epsilon: float, **attacker: float) -> Values:
        model = pkdp.AttackerModel(p_max=p, **attacker)  # type: ignore[arg-type]
        return each(k, lambda at: pkdp.certify(pkdp.Count(k=int(at)), model).delta(at_epsilon))

    pairs = [printed.theorem_4(n, p, int(at) - 1) for at in k]
    deltas, epsilons = (np.array([pair[which] for pair in pairs]) for which in (1, 0))
    others, few = n - 1, f"at most {n - 1:,} others"
    at_zero, above = (certified(at, unknown_max=others) for at in (0.0, epsilon))
    left = [
        Line(f"certified δ at ε = 0, {few}", at_zero, "certified"),
        Line(f"certified δ at ε = {epsilon:g}, {few}", above, "certified", style.SERIES[2]),
        Line(
            f"certified δ at ε = {epsilon:g}, however many others", certified(epsilon), "certified", style.MUTED, "any"
        ),
        Line("Theorem 4, δ", deltas, "sound", style.SERIES[1]),
        Line("Theorem 4, ε", epsilons, "sound", style.SERIES[3], "ε"),
    ]
    passive = certified(epsilon, unknown_max=others - known, known=known)
    truth = each(k, lambda at: passive_delta(n, p, known, int(at), epsilon))
    best = each(k, lambda at: printed.theorem_4_passive_delta(epsilon, n, p, int(at) - 1, known))
    right = [
        Line(f"certified, passive, {known:,} known", passive, "certified"),
        Line(f"exact, all others at {p:.0%}", truth, "exact"),
        Line("Theorem 4, passive, best b", best, "sound", style.SERIES[1]),
    ]
    at, limits = int(np.argmin(np.abs(k - 21))), (1e-15, 1.0)
    return Drawn(
        "figure_4",
        f"A count of {n:,} people, each counted with a probability of at most {p:.0%} ({n * p:g} expected), published "
        "from k on (k = T + 1). Theorem 4's δ holds at its own ε, and the two coincide; ε = 0 is enough. On the right "
        f"the attacker has seen {known:,} of the records.",
        f"a count published from k on: at k = {k[at]:.0f} Theorem 4 has δ = {rounded_up(deltas[at], 1)} at ε = "
        f"{rounded_up(epsilons[at], 1)}, certified is {rounded_up(at_zero[at], 1)} at ε = 0; with {known} known, "
        f"{rounded_up(best[at], 1)} against {rounded_up(passive[at], 1)} at ε = {epsilon:g}.",
        [
            Panel("Nobody is known", "threshold k", "δ, and Theorem 4's ε", k, left, limits),
            Panel(f"{known:,} people are known", "threshold k", f"δ at ε = {epsilon:g}", k, right, limits),
        ],
    )


def figure_5(n: int = 10_000, least: float = 0.1, noise: float = 1.0, delta: float = 1e-6, points: int = 14) -> Drawn:
    """ε against the share of people that the attacker knows: the noise takes over where uncertainty runs out."""
    ends = (0.0, 0.5 * math.log10(n) - 0.1, 0.75 * math.log10(n), math.log10(n))
    rest = np.concatenate([np.logspace(*ends[i : i + 2], many) for i, many in enumerate((3, points - 6, 4))])
    rest = np.unique(rest.round())[::-1]
    boxes = [pkdp.AttackerModel(p_min=least, p_max=1 - least, unknown=int(m)) for m in rest]
    mechanisms = pkdp.Count(), pkdp.Count(noise=pkdp.GeometricNoise(noise))
    plain, noised = (np.array([pkdp.certify(m, box).epsilon(delta) for box in boxes]) for m in mechanisms)
    closed = each(rest, lambda m: printed.theorem_3_closed_form(delta, int(m) + 1, least))
    lines = [
        Line("certified, no noise", plain, "certified", style.ACCENT, "plain", 4.4),
        Line("certified, noise added", noised, "certified", style.SERIES[2], "noised", 1.8),
        Line("the noise alone, against anyone", np.full(len(rest), noise), "noise", style.MUTED, "noised"),
        Line("Theorem 3, closed form, no noise", closed, "sound", style.SERIES[1], "plain"),
    ]
    shown = [share for share in (0.0, 0.9, 0.99, 0.999, 0.9999) if 1.0 - share >= 0.999 / n]
    ticks = [1.0 - share for share in shown], [f"{100 * share:.4g} %" for share in shown]
    taken = 1.0 - float(rest[int(np.argmax(plain > noise))]) / n
    return Drawn(
        "figure_5",
        f"A count of {n:,} people; those whom the attacker does not know have probabilities from {least:g} to "
        f"{1 - least:g}; two-sided geometric noise with ε = {noise:g}. The line without noise ends where no ε is "
        "certified at this δ.",
        f"ε at δ = {rounded_up(delta)} as the attacker knows more people: from {taken:.0%} known on, the noise, with "
        f"ε = {noise:g}, promises more than uncertainty alone.",
        [
            Panel(
                "",
                "share of people whom the attacker knows (log scale of the rest)",
                f"ε at δ = {rounded_up(delta)}",
                rest / n,
                lines,
                (0.1, 4.0),
                log_x=True,
                ticks=ticks,
            )
        ],
    )


def figure_6(people: int = 200, least: float = 0.1, noise: float = 0.7, points: int = 61) -> Drawn:
    """Uncertainty about others and noise, each alone and both together."""
    x = np.unique(np.append(np.linspace(0.0, 1.2, points), [0.99, 0.996, 0.999, 0.9998])) * noise
    box = pkdp.AttackerModel(p_min=least, p_max=1 - least, unknown=people)
    noised, alpha = pkdp.Count(noise=pkdp.GeometricNoise(noise)), math.exp(-noise)
    geometric = (1 - alpha) / (1 + alpha) * alpha ** np.abs(np.arange(-120, 121))
    together, alone = (pkdp.certify(mechanism, box).delta(x) for mechanism in (noised, pkdp.Count()))
    anyone = pkdp.certify(noised, pkdp.AttackerModel()).delta(x)
    exact = exact_delta(np.convolve(coins([least] * people), geometric), x)
    lines = [
        Line("certified, both together", together, "certified", style.SERIES[2]),
        Line(f"exact, both together, all others at {least:g}", exact, "exact"),
        Line("certified, uncertainty about others alone", alone, "certified", style.ACCENT, "plain"),
        Line("the noise alone, against anyone", anyone, "noise", style.MUTED),
    ]
    at = int(np.argmin(np.abs(x - 0.5 * noise)))
    return Drawn(
        "figure_6",
        f"A count with {people:,} unknown people between {least:g} and {1 - least:g}, and two-sided geometric noise "
        f"with ε = {noise:g}, whose δ is 0 from there on.",
        f"uncertainty and noise combined: at ε = {x[at]:.2g} together δ = {rounded_up(together[at], 1)}, alone "
        f"{rounded_up(alone[at], 1)} and {rounded_up(anyone[at], 1)}.",
        [Panel("", "ε", "δ", x, lines, (1e-8, 1.0))],
    )


def theorem_5(n: int = 10_000, least: float = 0.1, k: int = 1_200, epsilon: float = 1.0, points: int = 60) -> Drawn:
    """A k-anonymous histogram, which cell: Theorem 5 as printed and chained, beside theorem B."""
    attacker = pkdp.AttackerModel(p_max=1 - least)

    def certified(at: int) -> pkdp.Certificate:
        return pkdp.certify(pkdp.Histogram(k=at), attacker, protects="value")

    x = np.linspace(0.02, 2.0, points)
    numeric = each(x, lambda e: printed.theorem_5(e / 2, n, least, k - 1, numeric=True)[1])
    closed = each(x, lambda e: printed.theorem_5(e / 2, n, least, k - 1)[1])
    chained = each(x, lambda e: printed.theorem_5_chained(e / 2, n, least, k - 1)[1])
    left = [
        Line("certified, theorem B", np.asarray(certified(k).delta(x)), "certified"),
        Line("Theorem 5, numeric condition (no valid bound)", numeric, "wrong", style.WARN),
        Line("Theorem 5, closed form, as printed: (2ε, 2δ)", closed, "wrong", style.SERIES[3]),
        Line("Theorem 5, closed form, chained: (2ε, (1 + e^ε)δ)", chained, "sound", style.SERIES[2]),
    ]
    ks = np.unique(np.append(np.linspace(50, 1_050, 21), np.linspace(1_100, 2_000, points)).round())
    any_k = each(ks, lambda at: certified(int(at)).delta(epsilon))
    chained_k = each(ks, lambda at: printed.theorem_5_chained(epsilon / 2, n, least, int(at) - 1)[1])
    right = [
        Line("certified, theorem B", any_k, "certified"),
        Line("Theorem 5, closed form, chained", chained_k, "sound", style.SERIES[2]),
    ]
    at, limits = int(np.argmin(np.abs(x - 1.0))), (1e-16, 1.0)
    return Drawn(
        "theorem_5",
        f"A histogram of {n:,} people, cells published from k = T + 1 on: in which of two cells somebody is. Each cell "
        f"has, for everybody, a probability of at most λ = {least:g}, or of at least λ, and absence of at least λ. So, "
        f"told that somebody is in a cell or absent, the attacker is at most {1 - least:.0%} sure of the cell: all "
        "that theorem B assumes.",
        f"a histogram with k = {k:,}, which cell, at ε = {x[at]:.2g}: certified δ = {rounded_up(left[0].y[at], 1)}, "
        f"Theorem 5 printed {rounded_up(closed[at], 1)}, chained rightly {rounded_up(chained[at], 1)}.",
        [
            Panel(f"k = {k:,}", "ε", "δ", x, left, limits),
            Panel(f"ε = {epsilon:g}", "threshold k", "δ", ks, right, limits),
        ],
    )


FIGURES = (figure_2, figure_3, figure_4, figure_5, figure_6, theorem_5)


def draw_panel(axes: Axes, panel: Panel) -> None:
    """Draw one panel: certified lines strong, exact ones dotted, printed ones dashed."""
    axes.set_yscale("log")
    if panel.log_x:
        axes.set_xscale("log")
    dashes = iter(DASHES)
    for line in panel.lines:
        # A δ of 0 is below every tick; where there is no ε, or no number, there is no line.
        y = np.where(np.isfinite(line.y), np.maximum(line.y, 1e-9 * panel.limits[0]), np.nan)
        if line.kind == "certified":
            axes.plot(panel.x, y, label=line.label, color=line.color, linewidth=line.width, zorder=3)
        elif line.kind == "exact":
            dotted = (0, (0.1, 1.9))
            axes.plot(panel.x, y, label=line.label, color=style.INK, lw=2.2, ls=dotted, dash_capstyle="round", zorder=4)
        elif line.kind == "noise":
            axes.plot(panel.x, y, label=line.label, color=line.color, linewidth=1.8, linestyle=(0, (1.2, 1.2)))
        else:
            axes.plot(panel.x, y, label=line.label, color=line.color, linewidth=1.8, linestyle=next(dashes))
    axes.set_ylim(*panel.limits)
    dress(axes, x=panel.x_title, y=f"{panel.title}: {panel.y_title}".removeprefix(": ") + " (log scale)", rules="both")
    if panel.y_title.startswith("ε"):
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
    if panel.ticks is not None:
        # Whoever knows more is further to the right.
        axes.set_xlim(float(panel.x.max()), float(panel.x.min()))
        axes.set_xticks(*panel.ticks)
        axes.minorticks_off()


def draw(drawn: Drawn, width: float | None = None) -> Figure:
    """Return the figure: panels side by side, a legend below each, where it covers nothing, and the caption."""
    many = len(drawn.panels)
    width = width or {1: 7.4, 2: 12.4, 3: 14.4}[many]
    words = textwrap.wrap(drawn.caption, int(width * 12.4))
    rows = max(len(panel.lines) for panel in drawn.panels)
    height = 4.3 + 0.21 * rows + 0.19 * len(words)
    figure = Figure(figsize=(width, height), facecolor=style.SURFACE, layout="constrained")
    share = (0.19 * len(words) + 0.06) / height
    body, foot = figure.subfigures(2, 1, height_ratios=[1.0 - share, share])
    for place, panel in zip(body.subfigures(1, many, squeeze=False)[0], drawn.panels, strict=True):
        axes = place.add_subplot()
        draw_panel(axes, panel)
        handles, labels = axes.get_legend_handles_labels()
        spare = rows - len(handles)  # so that the axes of all panels are equally high
        place.legend(
            handles + [Line2D([], [], alpha=0.0)] * spare,
            labels + [" "] * spare,
            loc="outside lower left",
            frameon=False,
            fontsize=style.SMALL - 1,
            labelcolor=style.INK,
            handlelength=3.6,
        )
    foot.text(0.01, 0.95, "\n".join(words), ha="left", va="top", fontsize=style.SMALL - 1, color=style.MUTED)
    return figure


def main(folder: Path = OUT) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for make in FIGURES:
        drawn = make()
        figure = draw(drawn)
        figure.savefig(folder / f"{drawn.name}.png", dpi=150)
        figure.savefig(folder / f"{drawn.name}.svg", metadata={"Date": None})
        print(f"{drawn.name}: {drawn.shows}")
    print(f"Written to {folder}")


if __name__ == "__main__":
    main()
