{#- Generic tests. A test fails where its query returns rows. None publishes or charges by itself; a view that holds a
    question publishes when it is first read. -#}

{#- Every published count is at least k; of suppressed cells that a domain declares nothing is shown. With below='noise' only
    those marked exact are: where='exact' in the test's config. -#}
{% test at_least_k(model, column_name, k) %}
{%- if k is not number or k < 1 -%}
{{ exceptions.raise_compiler_error("pkdp.at_least_k: k must be a whole number of at least 1: write k: 20.") }}
{%- endif -%}
SELECT {{ column_name }} FROM {{ model }} WHERE {{ column_name }} < {{ k }}
{% endtest %}

{#- The model shows only what a release published: every row's number is that of the cell with these keys, in some release of
    the profile's ledger, or in those of one table or period, as pkdp_releases() names them. On the column of counts or sums; `by` are the columns of keys, in
    the order in which the release has them. -#}
{% test published(model, column_name, by=[], table=none, period=none) %}
{%- set keys = [by] if by is string else by -%}
{%- set types = {} -%}
{%- if execute and model is not string -%}
{%- for column in adapter.get_columns_in_relation(model) -%}{%- do types.update({column.name: column.data_type}) -%}{%- endfor -%}
{%- endif -%}
WITH cells AS (
    SELECT unnest(from_json(cells, '[{"keys": ["VARCHAR"], "count": "BIGINT"}]')) AS cell
    FROM pkdp_releases() WHERE {{ pkdp.chosen(table, period) }}
)
SELECT shown.{{ column_name }} FROM {{ model }} AS shown
WHERE NOT EXISTS (
    SELECT 1 FROM cells
    WHERE len(cell.keys) = {{ keys | length }} AND cell.count IS NOT DISTINCT FROM shown.{{ column_name }}
    {%- for key in keys %}
    AND TRY_CAST(cell.keys[{{ loop.index }}] AS {{ types.get(key, 'VARCHAR') }}) IS NOT DISTINCT FROM shown.{{ adapter.quote(key) }}
    {%- endfor %}
)
{% endtest %}

{#- Every release of the profile's ledger, or of one table or period, promises at most this ε at this δ. It is looked up where
    the certificate states it: at δ = 1e-6, and at the points of its grid. So another δ may fail where it holds, and never passes
    where it does not. With no release at all it fails. On the model that publishes, so that it runs after that. -#}
{% test promises(model, epsilon, delta=1e-6, table=none, period=none) %}
{%- set epsilon = pkdp.number('pkdp.promises: epsilon', epsilon, 1e300) -%}
{%- set delta = pkdp.number('pkdp.promises: delta', delta, 1.0) -%}
WITH releases AS (FROM pkdp_releases() WHERE {{ pkdp.chosen(table, period) }})
SELECT label, period FROM releases
WHERE NOT ({{ delta }} >= 1e-6 AND epsilon <= {{ epsilon }})
AND NOT list_bool_or([false] || list_transform(
    from_json(certificate -> '$.grid', '[{"epsilon": "DOUBLE", "delta": "DOUBLE"}]'),
    lambda point: point.epsilon <= {{ epsilon }} AND point.delta <= {{ delta }}
))
UNION ALL SELECT 'no release', NULL WHERE NOT EXISTS (FROM releases)
{% endtest %}

{%- macro chosen(table, period) -%}
true
{%- if table is not none %} AND table_name = {{ pkdp.literal(table | string) }}{% endif -%}
{%- if period is not none %} AND period = {{ pkdp.literal(period | string) }}{% endif -%}
{%- endmacro -%}
