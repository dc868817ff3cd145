"""``.. command-line::`` describes every command of ``pkdp`` as the program itself does."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from markup import escaped
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

__all__ = ["CommandLine", "described", "setup"]


def _usage(path: str, command: Any) -> str:
    words = [path]
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            word = parameter.metavar or parameter.name.upper()
            words.append(word if parameter.required else f"[{word}]")
        elif parameter.required:
            words.append(f"{parameter.opts[0]} {parameter.metavar or parameter.name.upper()}")
    if any(one.param_type_name != "argument" and not one.required for one in command.params):
        words.append("[OPTIONS]")
    return " ".join(words)


def _default(parameter: Any) -> str:
    # An argument is no flag, and does not say so.
    if parameter.required or getattr(parameter, "is_flag", False) or parameter.default in (None, "", ()):
        return ""
    return f" By default ``{parameter.default}``."


def _options(path: str, command: Any) -> list[str]:
    lines = []
    for parameter in command.params:
        if getattr(parameter, "hidden", False):
            continue
        argument = parameter.param_type_name == "argument"
        name = (parameter.metavar or parameter.name.upper()) if argument else ", ".join(parameter.opts)
        value = "" if argument or parameter.is_flag else f" {parameter.metavar or parameter.name.upper()}"
        again = ""
        if not argument and parameter.secondary_opts:
            again = f", {', '.join(parameter.secondary_opts)}"
        needed = " Needed." if parameter.required and not argument else ""
        lines += [f"``{name}{value}{again}``", f"   {escaped(parameter.help or '')}{needed}{_default(parameter)}", ""]
    return lines


def described(path: str, command: Any, level: int = 0) -> list[str]:
    """Return a command, its options and its subcommands as reStructuredText."""
    commands = getattr(command, "commands", {})
    lines = [path, "=-~"[level] * len(path), "", escaped(command.help or ""), ""]
    if not commands:
        lines += [".. code-block:: text", "", f"   {_usage(path, command)}", ""]
    lines += _options(path, command)
    for name, inner in commands.items():
        lines += described(f"{path} {name}", inner, level + 1)
    return lines


class CommandLine(SphinxDirective):
    """Put the description of all commands here."""

    def run(self) -> list[nodes.Node]:
        """Ask the program."""
        import typer

        from pkdp_pipeline.cli.main import app

        text = "\n".join(described("pkdp", typer.main.get_command(app)))
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive."""
    app.add_directive("command-line", CommandLine)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
