"""What a statement may use: functions, types and constructs that compute with released tables and do nothing else.

Everything that is not listed is refused. Left out on purpose are functions that read files, settings, variables
or the catalog, that make code of text, that make text or lists of any length, and that nobody needs.
"""

from __future__ import annotations

from types import MappingProxyType

__all__ = [
    "AGGREGATES",
    "ARGUMENTS",
    "CERTIFICATES",
    "COLLECTING",
    "EXPRESSIONS",
    "JOINS",
    "MACROS",
    "OPEN",
    "OPERATORS",
    "SCALARS",
    "TYPES",
    "WINDOWS",
]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Macros that publish or replay, with the number of their arguments that need no name.
MACROS = MappingProxyType({"pkdp_histogram": 2, "pkdp_count": 1})

#: Certificates as functions of numbers; they see no data.
CERTIFICATES = frozenset({"pkdp_delta", "pkdp_epsilon"})

#: Arguments of the macros, in the words of the policy where it decides: None where the analyst does.
ARGUMENTS = MappingProxyType(
    {
        "k": None,
        "k_complement": None,
        "filter": None,
        "noise": None,
        "release_threshold": None,
        "domain": "the policy's domains say which cells are public",
        "protects": "the policy says what is protected",
        "period": "the policy says which period the tables are about",
        "missing_unit": "rows without a privacy unit are dropped",
        "one_cell": "the policy says in which cell a person is counted",
        "order_by": "the policy says in which cell a person is counted",
        "undeclared": "people outside the public cells are absent",
    }
)

#: Those that the analyst chooses.
OPEN = tuple(argument for argument, reason in ARGUMENTS.items() if reason is None)

OPERATORS = frozenset({"+", "-", "*", "/", "//", "%", "**", "^", "@", "||", "~~", "!~~", "~~*", "!~~*", "^@"})

SCALARS = _words(
    """
    abs add cbrt ceil ceiling divide exp floor greatest isfinite isinf isnan least ln log log10 log2 mod multiply pi
    pow power round sign sqrt subtract trunc if ifnull nullif
    char_length character_length concat contains ends_with ilike_escape instr lcase left len length like_escape lower
    ltrim not_ilike_escape not_like_escape position prefix regexp_full_match regexp_matches reverse right rtrim
    starts_with strlen strpos substr substring suffix trim ucase upper
    century date_diff date_part date_sub date_trunc datediff datepart datesub datetrunc day dayname dayofmonth
    dayofweek dayofyear decade hour isodow isoyear last_day make_date microsecond millennium millisecond minute month
    monthname quarter second week weekday weekofyear year yearweek to_days to_hours to_minutes to_months to_seconds
    to_weeks to_years
    """
)

AGGREGATES = _words(
    """
    any_value arbitrary arg_max arg_min argmax argmin avg bool_and bool_or corr count count_if count_star countif
    covar_pop covar_samp first fsum kahan_sum last max max_by mean min min_by regr_avgx regr_avgy regr_count
    regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy stddev stddev_pop stddev_samp sum sumkahan var_pop
    var_samp variance
    """
)

#: Aggregates that keep every value they see, outside the memory that DuckDB limits.
COLLECTING = frozenset({"median", "mode", "quantile", "quantile_cont", "quantile_disc"})

WINDOWS = _words(
    """
    cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank rank rank_dense row_number
    """
)

TYPES = _words(
    """
    bigint bool boolean date dec decimal double float float4 float8 hugeint int int1 int2 int4 int8 integer interval
    long numeric real short signed smallint string text time timestamp timestamptz tinyint ubigint uinteger usmallint
    utinyint uuid varchar
    """
) | {"double precision", "timestamp with time zone"}

#: Operators of expressions that DuckDB does not write as functions.
EXPRESSIONS = _words(
    """
    COMPARE_IN COMPARE_NOT_IN GROUPING_FUNCTION OPERATOR_COALESCE OPERATOR_IS_NOT_NULL OPERATOR_IS_NULL OPERATOR_NOT
    OPERATOR_NULLIF
    """
)

JOINS = frozenset({"INNER", "LEFT", "RIGHT", "OUTER", "FULL", "SEMI", "ANTI"})
