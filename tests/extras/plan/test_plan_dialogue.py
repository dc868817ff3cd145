"""The dialogue: defaults, help, rules that are named, and the question that comes of the answers."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

import pkdp_pipeline as pkdp
from pkdp_pipeline.cli.dialogue import Asker, real_number, share, whole
from pkdp_pipeline.cli.screen import Screen
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.extras.plan.answers import planned
from pkdp_pipeline.extras.plan.dialogue import ask_choice, ask_question
from pkdp_pipeline.extras.plan.question import Assumed, CountsFile, Question

HABITS = pkdp.IndependentGivenHabits()


class Typed:
    """What somebody types, line by line; every prompt is kept."""

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)
        self.prompts: list[str] = []

    def __call__(self, prompt: str) -> str:
        self.prompts.append(prompt)
        if not self.lines:
            raise EOFError
        return self.lines.pop(0)


def asked(*lines: str, width: int = 80) -> tuple[Question, str, Typed]:
    typed, text = Typed(*lines), io.StringIO()
    screen = Screen(Console(file=text, width=width, markup=False, highlight=False))
    asker = Asker(screen, typed)
    question = asker.replayed(lambda: ask_question(asker))
    assert typed.lines == [], "not everything was asked for"
    return question, text.getvalue(), typed


def words(text: str) -> str:
    return " ".join(text.split())


def test_with_enter_alone_nothing_is_assumed():
    #                         kind hidden noise list sure times ε δ counts
    question, text, typed = asked(*[""] * 9)
    assert question == Question(kind="histogram", attacker=pkdp.AttackerModel(), epsilon=1.0, delta=1e-6)
    assert typed.prompts == [
        *("  [1] > ", "  [1] > ", "  [yes] > ", "  [yes] > ", "  [cannot say] > ", "  [1] > ", "  [1] > "),
        *("  [1e-6] > ", "  [1] > "),
    ]
    assert "somebody who was 50 % sure of something about a person is at most 73.2 % sure" in words(text)


def test_a_year_against_an_attacker_who_knows_somebody():
    question, _, _ = asked(
        *("1", "presence", "y", "no", "10 %", "", "", "365", "2", "8", "1e-7", "3", "20,000", "30", "zipf")
    )
    assert question == Question(
        kind="histogram",
        attacker=pkdp.AttackerModel(p_max=0.1, known=1, influence="active"),
        epsilon=8.0,
        delta=1e-7,
        days=365,
        evidence=(HABITS,),
        counts=Assumed(cells=30, people=20000, spread="zipf"),
        declared_cells=False,
    )


def test_an_election_without_noise():
    # hidden: the group; no noise; absent: no; between two groups; known, passive
    question, text, typed = asked("1", "2", "no", "", "0.7", "5", "2", "", "", "", "")
    attacker = pkdp.AttackerModel(p_max_between=0.7, known=5)
    assert question == Question(
        kind="histogram", attacker=attacker, epsilon=1.0, delta=1e-6, protects="value", noise=False
    )
    assert "Told that a person is in one of two groups" in words(text)
    assert "  > " in typed.prompts  # without noise there is no default for how sure an attacker can be
    told, _, _ = asked("1", "value", "no", "yes", "0.2", "0", "", "", "", "")
    assert told.attacker == pkdp.AttackerModel(p_max=0.2)


def test_a_count_may_be_exact():
    question, _, _ = asked("2", "yes", "60 %", "0.3", "2000", "0", "", "", "", "assumed", "5000")
    assert question.attacker == pkdp.AttackerModel(p_max=0.6, p_min=0.3, unknown=2000)
    assert (question.kind, question.counts) == ("count", Assumed(cells=1, people=5000))
    plain, _, _ = asked("count", "", "60 %", "", "0", "", "", "", "")
    assert plain.attacker == pkdp.AttackerModel(p_max=0.6)
    certain, _, _ = asked("count", "", "1", "0", "", "", "", "")
    assert certain.attacker == pkdp.AttackerModel(p_max=1.0)


@pytest.mark.parametrize(
    ("answers", "evidence"),
    [
        (["1"], ()),
        (["once_per_unit"], (pkdp.OncePerUnit(),)),
        (["4"], (pkdp.DisjointUnits(),)),
        (["5"], (pkdp.OneDayProtected(),)),
        (["6", "0", "3", ""], (pkdp.BoundedParticipation(3),)),
        (["6", "3", "y"], (HABITS, pkdp.BoundedParticipation(3))),
        (["7", "-1", "0.5", ""], (pkdp.BoundedDependence(0.5, 0.0),)),
        (["7", "0.5", "1e-9"], (pkdp.BoundedDependence(0.5, 1e-9),)),
    ],
)
def test_evidence_is_asked_for_where_there_are_several(answers, evidence):
    question, _, _ = asked("", "", "", "", "", "12", *answers, "", "", "")
    assert (question.days, question.evidence) == (12, evidence)


def test_what_is_malformed_is_asked_again_and_the_rule_is_named():
    question, text, _ = asked(
        *("3", "?", "table", "1", "", "perhaps", "?", "yes", "?", ""),
        *("120 %", "much", "?", "5 %", "-1", "1.5", "?", "0"),
        *("none", "?", "7", "?", "1", "-2", "nan", "inf", "lots", "?", "0.5"),
        *("0", "2", "?", "1e-5", "9", "?", ""),
    )
    assert (question.days, question.epsilon, question.delta) == (7, 0.5, 1e-5)
    assert question.attacker == pkdp.AttackerModel(p_max=0.05)
    told = words(text)
    for rule in (
        "Answer with a number from 1 to 2; ? explains.",
        "Answer yes or no; ? explains.",
        "It must be a probability: a number from 0 to 1, or one from 0 to 100 followed by %.",
        "It must be a number, with a point before decimals; 1e-6 is a millionth.",
        "It must be a whole number of at least 0.",
        "It must be a whole number of at least 1.",
        "It must be at least 0.",
        "It must be a finite number.",
        "δ must be above 0",
        "Answer with a number from 1 to 3; ? explains.",
        "A table in which every person is in one group or in none",
        "never estimated from the data to be protected",
        "false evidence voids the promise",
        "ε = 8: 100 %",
        "A k that is chosen by a look at the protected counts voids its certificate",
    ):
        assert rule in told, rule


def test_a_file_of_public_counts_is_read_before_it_is_accepted(tmp_path):
    good, bad = tmp_path / "good.csv", tmp_path / "bad.csv"
    good.write_text("cell,people\na,5\nb,6\n", encoding="utf-8")
    bad.write_text("name,count\nNakamura,x\n", encoding="utf-8")
    question, text, _ = asked(
        *[""] * 8, "2", "", str(tmp_path / "nowhere.csv"), str(bad), "?", str(good), "cell", "people"
    )
    assert question.counts == CountsFile(path=str(good), column="people")
    told = words(text)
    assert "By naming it you declare that it is public." in told
    assert "There is no default: this has to be answered" in told
    assert "cannot be read" in told
    assert told.count("must be a whole number of at least 0") == 2
    assert "Nakamura" not in told


def test_a_choice_is_made_by_its_number():
    made = planned(Question(kind="histogram", attacker=pkdp.AttackerModel(p_max=0.1), epsilon=1.0, delta=1e-6))
    text = io.StringIO()
    screen = Screen(Console(file=text, width=80, markup=False))
    assert ask_choice(Asker(screen, Typed("")), made) == made
    second = ask_choice(Asker(screen, Typed("0", "5", "?", "2")), made)
    assert second.choice == made.choices[1]
    assert second.question.command().endswith("--choice 2")
    assert "Answer with a number from 1 to 4." in text.getvalue()


def test_back_asks_the_question_before_once_more():
    straight, _, _ = asked("1", "", "no", "0.2", "0", "12", "6", "3", "y", "2", "1e-7", "")
    question, text, _ = asked(
        *("1", "back", "2", "BACK", "1", "", "no", "0.3", "back", "0.2", "0", "9", "2", "back", "back", "12"),
        *("6", "3", "y", "2", "back", "2", "1e-7", "assumed", "7", "back", "back", ""),
    )
    assert question == straight
    assert text.count("What is published?") == 3
    assert text.count("keeps a promise") == 1
    _, text, _ = asked("back", *[""] * 9)
    assert "This is the first question." in text


def test_a_file_is_not_named_twice_for_its_column(tmp_path):
    file = tmp_path / "people.csv"
    file.write_text("cell,people,n\na,5,3\nb,6,7\n", encoding="utf-8")
    typed = Typed(*[""] * 8, "2", str(file), "people", "back", "n")
    screen = Screen(Console(file=io.StringIO(), width=80))
    asker = Asker(screen, typed)

    def dialogue():
        question = ask_question(asker)
        asker("choice")
        return question

    typed.lines.append("1")
    assert asker.replayed(dialogue).counts == CountsFile(path=str(file), column="n")


@pytest.mark.parametrize(
    ("answers", "instead", "words"),
    [
        (["1", "1", "no", "100 %"], ["0.2"], "nobody is ever absent"),
        (["1", "2", "no", "yes", "1"], ["0.2"], "p_max"),
        (["1", "2", "no", "no", "1"], ["0.7"], "p_max_between = 1"),
        (["2", "no", "100%"], ["0.2", ""], "p_max = 1"),
        (["1", "1", "no", "0.2", "0", "365", "1"], ["2"], "promise nothing together"),
        (["2", "no", "0.2", "", "0", "365", "none"], ["2"], "promise nothing together"),
        (["1", "1", "no", "0.2", "0", "365", "6", "3", "no"], ["yes"], "promise nothing together"),
    ],
)
def test_a_dead_end_is_told_at_once(answers, instead, words):
    typed, text = Typed(*answers), io.StringIO()
    asker = Asker(Screen(Console(file=text, width=80)), typed)
    with pytest.raises(EOFError):
        asker.replayed(lambda: ask_question(asker))
    told = " ".join(text.getvalue().split())
    assert words in told.rpartition("?")[2]
    assert "go back to allow noise" in told
    assert typed.prompts[-1] == typed.prompts[-2]  # it is asked again
    typed.lines = [*instead, *[""] * 12]
    asker.replayed(lambda: ask_question(asker))


def test_the_end_of_the_input_ends_the_dialogue():
    with pytest.raises(EOFError):
        asked("", "")


@pytest.mark.parametrize("width", [40, 80, 120])
def test_questions_fit_the_terminal(width):
    _, text, _ = asked(
        "?", "", "?", "", "?", "", "?", "", "?", "0.1", "?", "1", "?", "", "12", "?", "", *[""] * 3, width=width
    )
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width


def test_numbers_as_people_write_them():
    assert [share(text) for text in ("0.1", "10 %", "10%", "1e-3", "0", "100 %")] == [0.1, 0.1, 0.1, 0.001, 0.0, 1.0]
    assert whole(0)("20,000") == whole(0)("20_000") == 20000
    assert real_number("-2.5") == -2.5
    for check, text in (
        (share, "-1 %"),
        (share, "2"),
        (share, "%"),
        (whole(1), "0"),
        (whole(0), "2.0"),
        (whole(0), ""),
    ):
        with pytest.raises(ArgumentError):
            check(text)
