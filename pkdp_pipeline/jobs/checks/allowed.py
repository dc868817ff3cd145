"""The expectations that a job may use: what looks at one day's rows and at nothing else."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field

from pkdp_pipeline.jobs.checks import arguments as read
from pkdp_pipeline.jobs.checks.arguments import Reader

__all__ = ["Allowed", "allowed", "refusal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """A type of expectation: the arguments it needs and those it may have."""

    needs: Mapping[str, Reader]
    may_have: Mapping[str, Reader] = field(default_factory=dict)


_ROWS = {"row_condition": read.condition}
_EACH = {"mostly": read.share, **_ROWS}
_STRICT = {"strict_min": read.flag, "strict_max": read.flag}
_COLUMN = {"column": read.column}
_PAIR = {"column_A": read.column, "column_B": read.column}
_LIST = {"column_list": read.columns}
_PAIR_GAPS = {"ignore_row_if": read.one_of("both_values_are_missing", "either_value_is_missing", "neither")}
_LIST_GAPS = {"ignore_row_if": read.one_of("all_values_are_missing", "any_value_is_missing", "never")}


def _between(reader: Reader) -> Mapping[str, Reader]:
    return {"min_value": reader, "max_value": reader}


def _aggregate(reader: Reader) -> Allowed:
    return Allowed(needs=_COLUMN, may_have={**_between(reader), **_STRICT, **_ROWS})


def _each(needs: Mapping[str, Reader] | None = None, may_have: Mapping[str, Reader] | None = None) -> Allowed:
    return Allowed(needs={**_COLUMN, **(needs or {})}, may_have={**(may_have or {}), **_EACH})


_SET = Allowed(needs={**_COLUMN, "value_set": read.values}, may_have=_ROWS)
_ONE_OR_ALL = {"match_on": read.one_of("any", "all")}

allowed: Mapping[str, Allowed] = {
    "expect_column_distinct_values_to_be_in_set": _SET,
    "expect_column_distinct_values_to_contain_set": _SET,
    "expect_column_distinct_values_to_equal_set": _SET,
    "expect_column_max_to_be_between": _aggregate(read.bound),
    "expect_column_mean_to_be_between": _aggregate(read.number),
    "expect_column_median_to_be_between": _aggregate(read.number),
    "expect_column_min_to_be_between": _aggregate(read.bound),
    "expect_column_most_common_value_to_be_in_set": Allowed(
        needs={**_COLUMN, "value_set": read.values}, may_have={"ties_okay": read.flag, **_ROWS}
    ),
    "expect_column_pair_values_a_to_be_greater_than_b": Allowed(
        needs=_PAIR, may_have={"or_equal": read.flag, **_PAIR_GAPS, **_EACH}
    ),
    "expect_column_pair_values_to_be_equal": Allowed(needs=_PAIR, may_have={**_PAIR_GAPS, **_EACH}),
    "expect_column_pair_values_to_be_in_set": Allowed(
        needs={**_PAIR, "value_pairs_set": read.pairs}, may_have={**_PAIR_GAPS, **_EACH}
    ),
    "expect_column_proportion_of_non_null_values_to_be_between": _aggregate(read.share),
    "expect_column_proportion_of_unique_values_to_be_between": _aggregate(read.share),
    "expect_column_quantile_values_to_be_between": Allowed(
        needs={**_COLUMN, "quantile_ranges": read.quantiles}, may_have=_ROWS
    ),
    "expect_column_stdev_to_be_between": _aggregate(read.number),
    "expect_column_sum_to_be_between": _aggregate(read.number),
    "expect_column_to_exist": Allowed(needs=_COLUMN),
    "expect_column_unique_value_count_to_be_between": _aggregate(read.whole),
    "expect_column_value_lengths_to_be_between": _each(may_have={**_between(read.whole), **_STRICT}),
    "expect_column_value_lengths_to_equal": _each({"value": read.whole}),
    "expect_column_value_z_scores_to_be_less_than": _each({"threshold": read.number, "double_sided": read.flag}),
    "expect_column_values_to_be_between": _each(may_have={**_between(read.bound), **_STRICT}),
    "expect_column_values_to_be_dateutil_parseable": _each(),
    "expect_column_values_to_be_in_set": _each({"value_set": read.values}),
    "expect_column_values_to_be_json_parseable": _each(),
    "expect_column_values_to_be_null": _each(),
    "expect_column_values_to_be_unique": _each(),
    "expect_column_values_to_match_regex": _each({"regex": read.pattern}),
    "expect_column_values_to_match_regex_list": _each({"regex_list": read.patterns}, _ONE_OR_ALL),
    "expect_column_values_to_match_strftime_format": _each({"strftime_format": read.text}),
    "expect_column_values_to_not_be_in_set": _each({"value_set": read.values}),
    "expect_column_values_to_not_be_null": _each(),
    "expect_column_values_to_not_be_outliers": _each(
        may_have={"method": read.one_of("iqr", "std"), "multiplier": read.number}
    ),
    "expect_column_values_to_not_match_regex": _each({"regex": read.pattern}),
    "expect_column_values_to_not_match_regex_list": _each({"regex_list": read.patterns}),
    "expect_compound_columns_to_be_unique": Allowed(needs=_LIST, may_have={**_LIST_GAPS, **_EACH}),
    "expect_multicolumn_sum_to_equal": Allowed(
        needs={**_LIST, "sum_total": read.number}, may_have={**_LIST_GAPS, **_EACH}
    ),
    "expect_multicolumn_values_to_be_equal": Allowed(needs=_LIST, may_have={**_LIST_GAPS, **_EACH}),
    "expect_select_column_values_to_be_unique_within_record": Allowed(needs=_LIST, may_have={**_LIST_GAPS, **_EACH}),
    "expect_table_row_count_to_be_between": Allowed(needs={}, may_have={**_between(read.whole), **_STRICT, **_ROWS}),
    "expect_table_row_count_to_equal": Allowed(needs={"value": read.whole}, may_have=_ROWS),
}
"""Every type that a job may use, with its arguments."""

_TYPES = "write [checks] columns, which means the same with every engine."
_WHOLE_TABLE = "write [checks] columns: a job reads only the columns it names."
_LIKE = "patterns of LIKE are for databases; match a regular expression."

_OTHERWISE = {
    "expect_column_kl_divergence_to_be_less_than": "bound the mean, the quantiles or the set of values.",
    "expect_column_type_to_be": _TYPES,
    "expect_column_values_to_be_decreasing": "the rows of a day have no order.",
    "expect_column_values_to_be_in_type_list": _TYPES,
    "expect_column_values_to_be_increasing": "the rows of a day have no order.",
    "expect_column_values_to_be_of_type": _TYPES,
    "expect_column_values_to_match_json_schema": "a schema can refer to other files; match a regular expression.",
    "expect_column_values_to_match_like_pattern": _LIKE,
    "expect_column_values_to_match_like_pattern_list": _LIKE,
    "expect_column_values_to_not_match_like_pattern": _LIKE,
    "expect_column_values_to_not_match_like_pattern_list": _LIKE,
    "expect_multicolumn_values_to_be_unique": "write expect_select_column_values_to_be_unique_within_record.",
    "expect_query_results_to_match_comparison": "it runs queries and reads other data.",
    "expect_table_column_count_to_be_between": _WHOLE_TABLE,
    "expect_table_column_count_to_equal": _WHOLE_TABLE,
    "expect_table_columns_to_match_ordered_list": _WHOLE_TABLE,
    "expect_table_columns_to_match_set": _WHOLE_TABLE,
    "expect_table_row_count_to_equal_other_table": "it reads other data.",
    "unexpected_rows_expectation": "it runs a query.",
}
"""Why a known type may not be used, or what to write instead."""


def refusal(name: object) -> str:
    """Return why a type of expectation cannot be used."""
    if not isinstance(name, str) or not name:
        return "must be the type of an expectation, such as 'expect_column_values_to_be_between'."
    if name in _OTHERWISE:
        return f"{name!r} cannot be used in a job: {_OTHERWISE[name]}"
    close = difflib.get_close_matches(name, allowed, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}?" if close else "docs/checks.md lists those a job can use."
    return f"unknown expectation {name!r}; {hint}"
