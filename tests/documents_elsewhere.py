"""Documents of every kind, written on one processor and read on another one; run as a program, see `main`."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

import pkdp_pipeline as pkdp
from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.codec import SEARCHED, differences
from pkdp_pipeline.certificates.composed import ComposedCertificate
from pkdp_pipeline.cli.main import app

TESTS = Path(__file__).resolve().parent
sys.path.insert(0, str(TESTS / "extras" / "assurance" / "verification"))

PLANS = (
    ("plan", "histogram", "--p-max", "0.1", "--epsilon", "1", "--delta", "1e-6"),
    ("plan", "count", "--p-min", "0.2", "--p-max", "0.4", "--unknown", "300", "--epsilon", "0.5", "--delta", "1e-9"),
)


def in_present_words(certificate: Certificate) -> Certificate:
    """Return a certificate that was read, and its parts, as if they were made now."""
    if isinstance(certificate, ComposedCertificate):
        parts = tuple((in_present_words(part), times) for part, times in certificate.parts)
        return ComposedCertificate(protects=certificate.protects, parts=parts, evidence=certificate.evidence)
    return certificate.with_caveats()


def certificates(*, many: bool) -> Iterator[tuple[str, Certificate]]:
    """Yield certificates on every theorem and every rule, and totals far in whose tails rounding shows."""
    documents = json.loads((TESTS / "data" / "frozen" / "certificate.v1.json").read_text(encoding="utf-8"))
    for place, document in enumerate(documents):
        yield f"frozen-{place}", in_present_words(Certificate.from_json(json.dumps(document)))
    habits, twice = pkdp.IndependentGivenHabits(), pkdp.BoundedParticipation(times=2)
    for k, p in ((20, 0.1), (50, 0.3), (12, 0.02), (100, 0.05))[: 4 if many else 1]:
        certificate, other = (pkdp.certify(pkdp.Histogram(k=each), pkdp.AttackerModel(p_max=p)) for each in (k, k + 10))
        for times in (2, 3, 7, 365) if many else (2, 365):
            yield f"year-{k}-{times}", pkdp.compose([(certificate, times)], [habits])
            yield f"year-{k}-{times}-twice", pkdp.compose([(certificate, times), (other, 2)], [habits, twice])
            yield f"year-{k}-{times}-more", pkdp.compose([(certificate, times), (other, 2)], [habits])
            yield f"days-{k}-{times}", pkdp.compose([(certificate, times), (other, 2)], [pkdp.OneDayProtected()])
            if many:
                dependence = [pkdp.BoundedDependence(epsilon=0.05, delta=0.0)]
                yield f"dependent-{k}-{times}", pkdp.compose([(certificate, times), (other, 2)], dependence)
                yield f"disjoint-{k}-{times}", pkdp.compose([(certificate, times), (other, 2)], [pkdp.DisjointUnits()])
    for noise, times in itertools.product((0.1, 0.5) if many else (0.1,), (2, 30, 365)):
        noised = pkdp.certify(pkdp.Count(noise=pkdp.GeometricNoise(noise)), pkdp.AttackerModel())
        finer = pkdp.certify(pkdp.Count(noise=pkdp.GeometricNoise(noise / 3)), pkdp.AttackerModel())
        yield f"noise-{noise}-{times}", pkdp.compose([(noised, times), (finer, times)])
    if many:
        for unknown in (50, 10_000, 10**7):
            box = pkdp.AttackerModel(p_min=0.05, p_max=0.3, unknown=unknown)
            count = pkdp.certify(pkdp.Count(), box)
            yield f"count-{unknown}", count
            yield f"noisy-{unknown}", pkdp.certify(pkdp.Count(noise=pkdp.GeometricNoise(0.5)), box)
            yield f"counts-{unknown}", pkdp.compose([(count, 5)], [habits])
        for k, p in ((5, 0.5), (40, 0.1), (300, 0.02)):
            box = pkdp.AttackerModel(p_max=p, known=3)
            yield f"value-{k}", pkdp.certify(pkdp.Histogram(k=k), box, protects="value")


def plan(arguments: tuple[str, ...], *, curves: bool) -> Any:
    """Return a plan as a document."""
    return json.loads(CliRunner().invoke(app, [*arguments, "--json", *([] if curves else ["--no-curves"])]).stdout)


def write(folder: Path, *, many: bool) -> None:
    """Write documents of every kind to a folder."""
    from published_files import job, page

    for name, certificate in certificates(many=many):
        (folder / f"{name}.certificate.json").write_text(certificate.to_json(), encoding="utf-8")
    for place, arguments in enumerate(PLANS):
        (folder / f"{place}.plan.json").write_text(json.dumps(plan(arguments, curves=many)), encoding="utf-8")
    for kind in ("quiet", "noisy") if many else ("quiet",):
        for form in ("json", "html") if many else ("html",):  # a page carries its document
            (folder / f"{kind}.report.{form}").write_text(page(kind, form=form), encoding="utf-8")
        content = (job(kind).parent / "visits.sqlite").read_bytes()
        (folder / f"{kind}.sqlite").write_bytes(content)
        with pkdp.Ledger.open(folder / f"{kind}.sqlite", dataset="visits") as ledger:
            (folder / f"{kind}.total.json").write_text(ledger.total().to_json(), encoding="utf-8")


def complaints(folder: Path) -> Iterator[str]:
    """Yield what a reader on this processor finds wrong about documents of a folder."""
    for file in sorted(folder.glob("*.certificate.json")):
        try:
            read = Certificate.from_json(file.read_text(encoding="utf-8"))
            read.verify()
        except pkdp.PkdpError as error:
            yield f"{folder.name}/{file.name}: {error}"
    for file in sorted((*folder.glob("*.report.*"), *folder.glob("*.total.json"))):
        verification = pkdp.verify(file, ledger=folder / f"{file.name.partition('.')[0]}.sqlite", draws=100)
        if not verification.passed:
            yield f"{folder.name}/{file.name}: {verification}"
    for place, arguments in enumerate(PLANS):
        stored = json.loads((folder / f"{place}.plan.json").read_text(encoding="utf-8"))
        again = plan(arguments, curves=bool(stored["curves"]))
        for difference in differences(f"{folder.name}/plan {place}", stored, again, rounding=lambda steps: SEARCHED):
            yield str(difference)


def main(task: str, *folders: str) -> None:
    """Write documents to a folder (``write``, ``write-many``), or ``read`` those of several."""
    if task == "read":
        complained = [complaint for folder in folders for complaint in complaints(Path(folder))]
        print("\n".join(complained))
        sys.exit(bool(complained))
    write(Path(folders[0]), many=task == "write-many")


if __name__ == "__main__":
    main(*sys.argv[1:])
