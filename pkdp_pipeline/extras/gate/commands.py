"""The commands ``pkdp gate check | token | serve``: a gate for analysts, in a process of its own."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.model.wording import INSTALLED

if TYPE_CHECKING:
    from pkdp_pipeline.cli.screen import Screen
    from pkdp_pipeline.extras.gate.policy import PermittedTable, Policy

gate_app = typer.Typer(
    help="Answer the questions of people who may not see the data: check a policy, make tokens, serve.",
    no_args_is_help=True,
)

PolicyFile = Annotated[Path, typer.Argument(metavar="POLICY.toml", help="The questions allowed.", show_default=False)]
Database = Annotated[
    Path, typer.Option(metavar="FILE", help="The DuckDB database; it is only read.", show_default=False)
]


@gate_app.command()
def check(
    policy_file: PolicyFile,
    *,
    database: Database,
    audit_log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also check that no line of this log was changed.")
    ] = None,
) -> None:
    """Check a policy against the database, and say in plain words what analysts could ask and learn."""
    from pkdp_pipeline.cli.screen import Screen
    from pkdp_pipeline.extras.gate.permitted import describe
    from pkdp_pipeline.extras.gate.policy import check_ledger
    from pkdp_pipeline.extras.gate.records import verify_audit_log

    policy, tables, linked = _opened(policy_file, database)
    allowed = describe(policy, tables)
    check_ledger(policy)
    lines = None if audit_log is None else verify_audit_log(audit_log)
    screen = Screen()
    screen.title(f"{policy_file} · {database}")
    for name, table in allowed["tables"].items():
        _print_table(screen, name, table)
    _print_together(screen, allowed)
    if lines is not None:
        screen.head("Audit log")
        screen.say(f"{lines[0]} lines, each with the hash of the one before. Keep the last hash elsewhere: {lines[1]}")
    warnings = _warnings(policy, linked, database, policy_file)
    if warnings:
        screen.head("Warnings")
    for warning in warnings:
        screen.item(warning)


@gate_app.command()
def token(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The analyst, for the audit log.", show_default=False)],
    *,
    token_file: Annotated[Path, typer.Option(metavar="FILE", help="Add its sha256 there.", show_default=False)],
    days: Annotated[int, typer.Option(help="Days for which it is valid.")] = 90,
) -> None:
    """Make a token for one analyst and print it, this once."""
    from pkdp_pipeline.extras.gate.records import add_token

    typer.echo(add_token(token_file, name, days=days))


@gate_app.command()
def serve(
    policy_file: PolicyFile,
    *,
    database: Database,
    token_file: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="The tokens that are let in, as pkdp gate token writes them; read for every request.",
            show_default=False,
        ),
    ],
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Listen on this address.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Listen on this port; 0: any free one.")] = 8765,
    audit_log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Default: beside the policy, as POLICY.audit.jsonl.")
    ] = None,
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Let other machines connect. TLS has to be in front of it.")
    ] = False,
    name: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST", help="The host name of a proxy in front; again for each."),
    ] = None,
) -> None:
    """Serve analysts who have a token, until SIGTERM or Ctrl-C."""
    if any(find_spec(name) is None for name in ("starlette", "uvicorn")):
        raise ConfigError(f"pkdp gate serve needs the extra 'gate': {INSTALLED.format('gate')}.")
    from pkdp_pipeline.extras.gate.gate import Gate
    from pkdp_pipeline.extras.gate.permitted import describe, totals
    from pkdp_pipeline.extras.gate.policy import check_ledger
    from pkdp_pipeline.extras.gate.records import AuditLog, read_tokens
    from pkdp_pipeline.extras.gate.service import Service, ServiceLimits, bound, run, server, service_names

    hosts = service_names(host, allow_remote=allow_remote, names=tuple(name or ()))
    policy, tables, linked = _opened(policy_file, database)
    names = sorted(read_tokens(token_file))
    audit = AuditLog(audit_log or policy_file.with_suffix(".audit.jsonl"))
    allowed, limits = describe(policy, tables), policy.limits
    check_ledger(policy, make=True)
    for warning in _warnings(policy, linked, database, policy_file):
        typer.echo(f"pkdp: warning: {warning}", err=True)
    with bound(host, port) as listening, Gate(database, policy=policy) as gate:
        socket_name = listening.getsockname()
        for refused in gate.unreadable:
            typer.echo(
                f"pkdp: warning: table {refused!r} answers no new question: it cannot be read in full, or names of "
                "people in it differ only by spaces; offer the corrected data under another name.",
                err=True,
            )
        address = (
            f"[{socket_name[0]}]:{socket_name[1]}" if ":" in socket_name[0] else f"{socket_name[0]}:{socket_name[1]}"
        )
        service = Service(
            gate,
            describe=lambda: allowed | {"totals": totals(gate.total, tables)},
            token_file=token_file,
            audit=audit,
            hosts=hosts,
            limits=ServiceLimits(answer_bytes=limits.answer_bytes),
        )

        def started() -> None:
            audit.write("started", address=address, policy=str(policy_file.absolute()), tokens=names)
            typer.echo(f"pkdp gate: listening on http://{address}, audit log {audit.path}")

        try:
            serving = server(service, patience=limits.seconds + 5, longest=3 * limits.seconds + 150)
            run(serving, listening, on_start=started)
        finally:
            service.close()
            audit.write("stopped", address=address)


def _opened(policy_file: Path, database: Path) -> tuple[Policy, dict[str, PermittedTable], list[str]]:
    """Return the policy, the tables it is about, and what to warn of in the database."""
    from pkdp_pipeline.extras.gate.permitted import look_up
    from pkdp_pipeline.extras.gate.policy import Policy

    policy = Policy.read(policy_file).remembering(policy_file)
    return policy, *look_up(policy, database)


def _warnings(policy: Policy, linked: list[str], database: Path, policy_file: Path) -> list[str]:
    from pkdp_pipeline.extras.gate.permitted import file_warnings, threshold_warnings

    return threshold_warnings(policy) + linked + file_warnings(policy, database, policy_file)


def _print_table(screen: Screen, name: str, table: dict[str, Any]) -> None:
    unit = table["unit"]
    whom = "each row" if isinstance(unit, str) else f"each value of {', '.join(unit)}"
    screen.head(f"Table {name}")
    rows = [
        ("people", f"{whom} is a person; {_MISSING[isinstance(unit, str)]}"),
        ("may be named", ", ".join(f"{column} {kind}" for column, kind in table["columns"].items())),
        ("smallest k", f"{table['k']}: no count below it is ever published, without noise"),
        *((("with noise", table["k_with_noise"]),) if table["k_with_noise"] else ()),
        *((("below k", table["below"]),) if table["below"] else ()),
        *((("the total", _TOTAL),) if table["total"] else ()),
        *((f"sums of {name}", f"each person adds {least} to {most}") for name, (least, most) in table["sums"].items()),
        *((("sums of rows", "each person adds {} to {}".format(*table["rows"])),) if table["rows"] else ()),
        ("period", table["period"]),
        ("several cells", _SEVERAL[table["one_cell"]].format(", ".join(table["order_by"] or ()))),
        ("protected", _PROTECTED[table["protects"]]),
    ]
    for column, values in table["domains"].items():
        listed = ", ".join("missing" if value is None else str(value) for value in values)
        rows.append((f"cells of {column}", f"{listed}; always listed, NULL where suppressed"))
    screen.pairs(rows)
    for example in table["examples"]:
        screen.say("For example:")
        screen.command(json.dumps(example["question"], ensure_ascii=False))
        screen.say(example["promise"])


_MISSING = {False: "rows without one are not counted", True: "nobody has two"}
_SEVERAL = {
    "most_frequent": "a person in several cells is counted in the one where most of her rows are; of equals in "
    "one that a hash chooses",
    "first": "a person in several cells is counted in that of her first row, by {}",
    "hash": "a person in several cells is counted in one that a hash chooses",
}
_TOTAL = "the exact number of all people may be asked for: the attacker is declared to know it"
_PROTECTED = {"presence": "whether a person is there", "value": "which cell a person is in"}


def _print_together(screen: Screen, allowed: dict[str, Any]) -> None:
    from pkdp_pipeline.ledger import Budget
    from pkdp_pipeline.ledger.history import attacker_words, budget_words
    from pkdp_pipeline.model.attacker import AttackerModel

    limits, several = allowed["limits"], len(allowed["units"]) > 1
    screen.head("All of it together")
    screen.pairs([("attacker", attacker_words(AttackerModel.from_dict(allowed["attacker"])))])
    if allowed["noise"]:
        each = f", for {allowed['budgets_hold_for']} by itself," if several else ""
        screen.say(f"Noise may be asked for, and everything together{each} is held to:")
        for budget in map(Budget.from_dict, allowed["budgets"]):
            screen.item(budget_words(budget, budget.measures))
        if several:
            units = (unit if isinstance(unit, str) else ", ".join(unit) for unit in allowed["units"])
            screen.say(f"The units are {'; '.join(units)}: the tables of one do not spend the budget of another.")
    else:
        screen.say(
            "No noise: there is no budget, and anyone who may ask for fresh noise again and again averages it away."
        )
    screen.say("The same question is answered once, and replayed from then on to everybody.")
    unless = ", unless what is declared lets it stand beside the first:" if allowed["evidence"] else "."
    screen.say(
        f"A second noiseless question about the same people and period is refused{unless}"
        if allowed["noiseless"]
        else "Without noise nothing is answered: that has no worst case, which the budget is for."
    )
    for sentence in allowed["evidence"]:
        screen.item(sentence)
    answer = f"{limits['cells']} public cells, {limits['answer_bytes']} bytes"
    screen.pairs([("a question", f"{limits['seconds']:g} s, {limits['memory']}"), ("an answer", answer)])
