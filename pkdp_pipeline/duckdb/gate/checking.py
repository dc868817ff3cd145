"""Check: the walk over a statement's syntax tree, in which everything that is not listed is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pkdp_pipeline.duckdb.gate.allowed import (
    AGGREGATES,
    ARGUMENTS,
    CERTIFICATES,
    COLLECTING,
    EXPRESSIONS,
    JOINS,
    MACROS,
    OPEN,
    OPERATORS,
    SCALARS,
    WINDOWS,
)
from pkdp_pipeline.duckdb.gate.extent import Extent, range_rows
from pkdp_pipeline.duckdb.gate.syntax import (
    Fields,
    arguments,
    check_groups,
    check_type,
    constant,
    function_name,
    is_all,
    pieces,
    refused,
)
from pkdp_pipeline.duckdb.tables import lowered
from pkdp_pipeline.errors import ArgumentError

__all__ = ["DEPTH", "TOO_DEEP", "Check"]

TOO_DEEP = "the statement is nested too deeply; write it in fewer levels."

#: What a statement may add up to. DuckDB plans these before anything can interrupt it.
DEPTH = 60
_SIZE, _COLUMNS, _MACROS, _GROUPINGS, _NESTED, _PATH = 400, 1_000, 20, 64, 10, 4
#: Rows that a release is taken to have, and that may be collected by a median.
_RELEASE, _COLLECTED = 1_000, 10_000_000
#: Characters that a text may come to have.
_TEXT = 2**18


Scope = Mapping[str, Extent]


class Check:
    """Walks the tree of one statement; every method refuses by raising `ArgumentError`."""

    def __init__(self) -> None:
        self._depth = self._macros = self._characters = 0
        self._growth, self._rows = 1, 0
        self._collecting: str | None = None
        # Size and depth of the queries inside the expressions of each open query.
        self._inside = [(0, 0)]

    def statement(self, statement: object) -> None:
        """Check a whole statement.

        Raises
        ------
        ArgumentError
        """
        fields = Fields(statement)
        self._node(fields.take("node"), {})
        if fields.take("named_param_map"):
            raise refused("parameters", "Write the values into the statement.")
        fields.close("a statement")
        if self._growth * (self._characters + 256) > _TEXT:
            raise refused("so many concatenations that texts could become very long", "Use fewer of them.")
        if self._collecting is not None and self._rows > _COLLECTED:
            raise refused(f"{self._collecting} over so many rows", "Aggregate first.")

    # -- queries ------------------------------------------------------------------------------------------------

    def _node(self, node: object, scope: Scope) -> Extent:
        self._deeper(1)
        self._inside.append((0, 0))
        fields = Fields(node)
        kind = fields.take("type")
        known = {**scope, **self._ctes(fields.take("cte_map"), scope)}
        for modifier in fields.take("modifiers") or []:
            self._modifier(modifier, known)
        if kind == "SELECT_NODE":
            check_groups(fields)
            extent = self._select(fields, known)
        elif kind == "SET_OPERATION_NODE":
            extent = self._set_operation(fields, known)
        else:
            what = {"RECURSIVE_CTE_NODE": "WITH RECURSIVE"}.get(str(kind), "a query that is not a SELECT")
            raise refused(what)
        fields.close("a query")
        self._deeper(-1)
        size, nested = self._inside.pop()
        extent = Extent(extent.columns, extent.rows, 1 + extent.size + size, max(extent.nested, nested))
        if extent.columns > _COLUMNS or extent.size > _SIZE or extent.nested > _NESTED:
            raise refused("so many columns or parts that it could not be planned", "Write it in fewer parts.")
        self._rows = max(self._rows, extent.rows)
        return extent

    def _ctes(self, ctes: object, scope: Scope) -> dict[str, Extent]:
        fields = Fields(ctes or {})
        known: dict[str, Extent] = {}
        for entry in fields.take("map") or []:
            pair = Fields(entry)
            name, cte = pair.take("key"), Fields(pair.take("value"))
            pair.close("WITH")
            if not isinstance(name, str) or lowered(name).startswith("pkdp"):
                raise refused("WITH under a name that begins with pkdp", "Choose another name.")
            cte.take("aliases"), cte.take("materialized")
            query = cte.take("query_node") or (cte.take("query") or {}).get("node")
            # A table expression sees those before it; a name that is its own would be looked up in the catalog.
            known[lowered(name)] = self._node(query, {**scope, **known})
            cte.close("WITH")
        fields.close("WITH")
        return known

    def _modifier(self, modifier: object, scope: Scope) -> None:
        fields = Fields(modifier)
        kind = fields.take("type")
        if kind == "ORDER_MODIFIER":
            self._orders(fields.take("orders"), scope)
        elif kind in ("LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER"):
            fields.take("limit_type")
            self._optional(fields.take("limit"), scope)
            self._optional(fields.take("offset"), scope)
        elif kind == "DISTINCT_MODIFIER":
            self._all(fields.take("distinct_on_targets"), scope)
        else:
            raise refused("a clause that is not known")
        fields.close("a clause")

    def _orders(self, orders: object, scope: Scope) -> None:
        for order in orders if isinstance(orders, list) else []:
            fields = Fields(order)
            fields.take("type"), fields.take("null_order")
            expression = fields.take("expression")
            if not is_all(expression):
                self._expression(expression, scope)
            fields.close("ORDER BY")

    def _select(self, fields: Fields, scope: Scope) -> Extent:
        source = self._table(fields.take("from_table"), scope)
        columns = 0
        for expression in fields.take("select_list") or []:
            if expression.get("type") == "STAR":
                self._star(Fields(expression), scope)
                columns += source.columns
            else:
                self._expression(expression, scope)
                columns += 1
        for name in ("where_clause", "having", "qualify"):
            self._optional(fields.take(name), scope)
        self._all(fields.take("group_expressions"), scope)
        if len(fields.take("group_sets") or []) > _GROUPINGS:
            raise refused("so many grouping sets", f"Use at most {_GROUPINGS}.")
        fields.one_of("aggregate_handling", "STANDARD_HANDLING", "FORCE_AGGREGATES", what="an unknown GROUP BY")
        return Extent(columns, source.rows, source.size, source.nested)

    def _set_operation(self, fields: Fields, scope: Scope) -> Extent:
        fields.take("setop_all")
        fields.one_of("setop_type", "UNION", "UNION_BY_NAME", "EXCEPT", "INTERSECT", what="an unknown set operation")
        sides = [fields.take("left"), fields.take("right"), *(fields.take("children") or [])]
        found = [self._node(side, scope) for side in sides if side is not None]
        columns, rows, sizes, nested = zip(*((e.columns, e.rows, e.size, e.nested) for e in found), strict=True)
        return Extent(sum(columns), sum(rows), sum(sizes), max(nested))

    # -- tables -------------------------------------------------------------------------------------------------

    def _table(self, table: object, scope: Scope) -> Extent:
        self._deeper(1)
        fields = Fields(table)
        kind = str(fields.take("type"))
        fields.take("column_name_alias")
        readers = {
            "BASE_TABLE": self._named,
            "EMPTY": lambda *_: Extent(0, 1, 0),
            "EXPRESSION_LIST": self._values,
            "JOIN": self._join,
            "SUBQUERY": lambda fields, scope: self._query(fields.take("subquery"), scope),
            "TABLE_FUNCTION": self._function_table,
        }
        if kind not in readers:
            what = {"SHOW_REF": "DESCRIBE, SHOW or SUMMARIZE", "PIVOT": "PIVOT"}.get(kind, "a table that is not known")
            raise refused(what)
        extent = readers[kind](fields, scope)
        fields.close("a table")
        self._deeper(-1)
        return extent

    def _named(self, fields: Fields, scope: Scope) -> Extent:
        name, schema, catalog = (fields.take(one) for one in ("table_name", "schema_name", "catalog_name"))
        path = (fields.take("qualified_name") or {}).get("path", [name])
        if schema or catalog or path != [name] or not isinstance(name, str) or lowered(name) not in scope:
            raise refused(
                "a table",
                "Tables are asked through pkdp_histogram('table', 'column', k := 20) and pkdp_count('table', k := 20); "
                "other names are those of WITH.",
            )
        return scope[lowered(name)]

    def _values(self, fields: Fields, scope: Scope) -> Extent:
        rows = fields.take("values") or []
        for row in rows:
            self._all(row, scope)
        return Extent(len(rows[0]) if rows else 0, len(rows), 1)

    def _join(self, fields: Fields, scope: Scope) -> Extent:
        left, right = self._table(fields.take("left"), scope), self._table(fields.take("right"), scope)
        self._optional(fields.take("condition"), scope)
        fields.take("using_columns"), fields.take("is_implicit")
        fields.one_of("join_type", *JOINS, what="an unknown join")
        fields.one_of("ref_type", "REGULAR", "NATURAL", "CROSS", "ASOF", what="an unknown join")
        fields.one_of("nearest_count", 1, what="an unknown join")
        fields.one_of("nearest_order_type", "ASCENDING", "INVALID", what="an unknown join")
        size, nested = left.size + right.size + 1, max(left.nested, right.nested)
        return Extent(left.columns + right.columns, left.rows * right.rows, size, nested)

    def _query(self, query: object, scope: Scope) -> Extent:
        fields = Fields(query)
        extent = self._node(fields.take("node"), scope)
        if fields.take("named_param_map"):
            raise refused("parameters", "Write the values into the statement.")
        fields.close("a query")
        return extent

    def _function_table(self, fields: Fields, scope: Scope) -> Extent:
        fields.one_of("with_ordinality", "WITHOUT_ORDINALITY", "WITH_ORDINALITY", what="an unknown table function")
        call = Fields(fields.take("function"))
        call.take("type"), call.take("class")
        name = function_name(call)
        given = arguments(call)
        call.close("a table function")
        if name in MACROS:
            return self._macro(name, given)
        if name in ("range", "generate_series"):
            return Extent(2, range_rows(name, given), 1)
        if name == "unnest" and len(given) == 1 and not given[0][0]:
            return Extent(2, self._texts(given[0][1]), 1)
        if name == "pkdp_releases" and not given:
            return Extent(10, _RELEASE, 1)
        raise refused(f"the table function {name!r}", "Tables come from pkdp_histogram, pkdp_count, range and VALUES.")

    def _macro(self, name: str, given: list[tuple[str, Any]]) -> Extent:
        """Check a call that publishes: constants under known names, and nothing that the policy decides."""
        self._macros += 1
        if self._macros > _MACROS:
            raise refused("so many releases", f"A statement may ask for {_MACROS}; ask for the rest in another one.")
        plain = [value for argument, value in given if not argument]
        named = [argument for argument, _ in given if argument]
        columns = 1
        if len(plain) != MACROS[name] or len(set(named)) < len(named):
            raise refused(
                f"{name} with other arguments than it has",
                f"Write {name}({', '.join(['table', 'by'][: MACROS[name]])}, k := 20, filter := 'flag').",
            )
        for argument, value in given:
            if argument and argument not in ARGUMENTS:
                raise refused(f"{name} with {argument}", f"Its arguments are {', '.join(OPEN)}.")
            reason = ARGUMENTS.get(argument)
            if reason is not None:
                raise refused(f"{argument} in {name}", f"Leave it out: {reason}.")
            texts = self._texts(value, count=argument != "filter")
            columns = max(columns, 1 + texts)
        return Extent(columns, _RELEASE if name == "pkdp_histogram" else 1, 4)

    def _texts(self, value: object, *, count: bool = True) -> int:
        texts = list(constant(value))
        if count:
            self._characters += sum(map(len, texts))
        return len(texts)

    # -- expressions --------------------------------------------------------------------------------------------

    def _optional(self, expression: object, scope: Scope) -> None:
        if expression is not None:
            self._expression(expression, scope)

    def _all(self, expressions: object, scope: Scope) -> None:
        for expression in expressions if isinstance(expressions, list) else []:
            self._expression(expression, scope)

    def _expression(self, expression: object, scope: Scope) -> None:
        self._deeper(1)
        fields = Fields(expression)
        group, kind = str(fields.take("class")), str(fields.take("type"))
        if group == "CONSTANT":
            self._texts(expression)
            fields.take("value"), fields.take("literal")
        elif group == "COLUMN_REF":
            if len(fields.take("column_names") or []) > _PATH:
                raise refused("a name of so many parts")
        elif group == "POSITIONAL_REFERENCE":
            fields.take("index")
        elif group in ("COMPARISON", "BETWEEN"):
            for name in ("left", "right", "input", "lower", "upper"):
                self._optional(fields.take(name), scope)
        elif group == "CONJUNCTION" or (group == "OPERATOR" and kind in EXPRESSIONS):
            self._all(fields.take("children"), scope)
        elif group == "CAST":
            check_type(fields)
            fields.take("try_cast")
            self._expression(fields.take("child"), scope)
        elif group == "CASE":
            self._case(fields, scope)
        elif group == "SUBQUERY":
            fields.take("subquery_type"), fields.take("comparison_type")
            self._optional(fields.take("child"), scope)
            inner, (size, nested) = self._query(fields.take("subquery"), scope), self._inside[-1]
            self._inside[-1] = (size + inner.size, max(nested, inner.nested + 1))
        elif group == "FUNCTION":
            self._call(fields, scope)
        elif group == "WINDOW":
            self._window(fields, scope)
        else:
            what = {"PARAMETER": "parameters", "LAMBDA": "a lambda", "COLLATE": "COLLATE"}.get(group)
            raise refused(what or f"{kind.replace('_', ' ').lower()} in an expression")
        fields.close("an expression")
        self._deeper(-1)

    def _case(self, fields: Fields, scope: Scope) -> None:
        for branch in fields.take("case_checks") or []:
            pair = Fields(branch)
            self._expression(pair.take("when_expr"), scope)
            self._expression(pair.take("then_expr"), scope)
            pair.close("CASE")
        self._optional(fields.take("else_expr"), scope)

    def _star(self, fields: Fields, scope: Scope) -> None:
        fields.take("class"), fields.take("type")
        if fields.take("columns") or fields.take("expr") is not None:
            raise refused("COLUMNS")
        for name in ("relation_name", "exclude_list", "qualified_exclude_list", "rename_list"):
            fields.take(name)
        for replaced in fields.take("replace_list") or []:
            pair = Fields(replaced)
            pair.take("key")
            self._expression(pair.take("value"), scope)
            pair.close("REPLACE")
        fields.close("*")

    def _call(self, fields: Fields, scope: Scope) -> None:
        fields.one_of("is_operator", False, True, what="an operator")
        fields.take("distinct")
        name = function_name(fields)
        given = arguments(fields)
        self._optional(fields.take("filter"), scope)
        ordered = fields.take("order_bys")
        if ordered is not None:
            self._modifier(ordered, scope)
        if name in MACROS:
            self._macro(name, given)
            return
        if name in CERTIFICATES:
            self._all([value for _, value in given], scope)
            return
        self._check_function(name, given)
        if name in ("||", "concat"):
            given = [("", piece) for piece in pieces(given)]
            self._growth *= max(1, sum(piece.get("class") != "CONSTANT" for _, piece in given))
        self._all([value for _, value in given], scope)

    def _check_function(self, name: str, given: list[tuple[str, Any]]) -> None:
        if name in COLLECTING:
            self._collecting = name
        elif name not in SCALARS | AGGREGATES | OPERATORS:
            raise refused(f"the function {name!r}")
        several = name in ("min", "max") or name.startswith(("arg", "max_by", "min_by"))
        if several and len(given) > (1 if name in ("min", "max") else 2):
            raise refused(f"{name} of several rows", "Use ORDER BY and LIMIT.")
        if any(argument for argument, _ in given):
            raise refused(f"{name} with named arguments")

    def _window(self, fields: Fields, scope: Scope) -> None:
        name = function_name(fields)
        given = arguments(fields)
        distinct = "DISTINCT " if fields.take("distinct") else ""
        if name in COLLECTING or distinct:  # the frame moves with every row, and nothing can interrupt that
            raise refused(f"{distinct}{name} over a window", "Use it with GROUP BY.")
        if name not in WINDOWS:
            self._check_function(name, given)
        self._all([value for _, value in given], scope)
        self._all(fields.take("partitions"), scope)
        self._orders(fields.take("orders"), scope)
        self._orders(fields.take("arg_orders"), scope)
        for one in ("start_expr", "end_expr", "offset_expr", "default_expr", "filter_expr"):
            self._optional(fields.take(one), scope)
        for one in ("start", "end", "exclude_clause", "ignore_nulls", "has_ignore_nulls"):
            fields.take(one)

    def _deeper(self, levels: int) -> None:
        self._depth += levels
        if self._depth > 2 * DEPTH:
            raise ArgumentError(TOO_DEEP)
