"""How many adults earn more than 50,000 dollars: an exact release from a census extract.

Run it with ``python examples/adult_census.py``. It publishes two exact counts and writes them, with their
certificate, to ``examples/out/adult_income.parquet``.

The assumption, argued
----------------------
In a census nobody is absent. To be told "this person is above 50,000 dollars, or absent" is then to be told
that she is above: ``p_max`` would be 1, and no promise about *presence* can be made. What can be protected is
the *value*, which of the two answers a person gave. The assumption for that is ``p_max_between``: told that a
person gave one of two answers, the attacker is at most this sure which. It is about every person whom the
attacker does not know, one by one, in both directions, and it is never read off the data.

We declare ``p_max_between = 0.99``. Whoever knows the age, job and schooling of a person can often guess
on which side of 50,000 dollars she is; to be more than 99 % sure takes her pay slip or her tax return. Of
pupils and students one can be that sure, so the release is about people of 25 and older. Those whose
answer the attacker *has* seen, the attacker's own household, some colleagues, are declared as ``known``: 100
people.

The number is an illustration, not one to copy. Of people without pay (an answer of the form), or with a few
hours a week, everybody is surer than 99 %. In earnest they would be left out by a rule that is fixed beforehand,
or counted as known. And what moves the target's answer together with that of her own household is hidden only
from attackers who know it: for others the household is the unit, or k is larger.

``k`` follows from this assumption and from the guarantee we want, (1, 1e-6), and from nothing else: the program
asks `smallest_k` for it before it opens the file. The closer ``p_max_between`` is to 1, the more people a cell
needs.

The proof (theorem C in ``docs/mathematics.md``) assumes nothing about absence: the exact number of people may
be published beside the table. Beside a release that protects presence it must not be.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

import pkdp_pipeline as pkdp

HERE = Path(__file__).resolve().parent
ATTACKER = pkdp.AttackerModel(p_max_between=0.99, known=100)


def main() -> None:
    k = pkdp.smallest_k(ATTACKER, epsilon=1.0, delta=1e-6, protects="value")
    people = pd.read_parquet(HERE / "data" / "adult.parquet")
    release = people.pkdp.histogram(
        "salary",
        unit="person_id",
        domain=["<=50K", ">50K"],  # the two answers of the form, not the values found in the data
        where="age >= 25",
        k=k,
        protects="value",
        attacker=ATTACKER,
    )
    print(release.table.to_string(index=False))
    print(release.certificate.sentence())
    print(f"People of 25 and older in the extract, exactly: {(people['age'] >= 25).sum()}.")

    path = HERE / "out" / "adult_income.parquet"
    path.parent.mkdir(exist_ok=True)
    release.to_parquet(path)
    pkdp.read_release(path)  # raises if the table or the certificate was altered
    print(f"Written to {path.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
