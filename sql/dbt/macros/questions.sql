{#- Questions that publish: each writes the call of pkdp's SQL function of that name, whose arguments these are.

    SELECT * FROM {{ pkdp.histogram(ref('visits'), by='clinic', k=20) }}
    SELECT * FROM {{ pkdp.count(ref('visits'), filter='age >= 18', k=20) }}
    SELECT * FROM {{ pkdp.sum(ref('visits'), 'items', by='clinic', bounds=[0, 5], noise=1.0, domain=['A', 'B']) }}

  The relation is committed before the release reads it, and depends on nothing else that dbt does. The attacker, the unit
  and the ledger are those of the profile's plugin, `pkdp_pipeline.duckdb.dbt`. -#}

{%- macro histogram(relation, by) -%}
{{ pkdp.called('pkdp_histogram', [relation | string, by], kwargs) }}
{%- endmacro -%}

{%- macro count(relation) -%}
{{ pkdp.called('pkdp_count', [relation | string], kwargs) }}
{%- endmacro -%}

{#- `column` is none for rows='count'. -#}
{%- macro sum(relation, column) -%}
{{ pkdp.called('pkdp_sum', [relation | string, column], kwargs) }}
{%- endmacro -%}

{%- macro called(name, positional, named) -%}
{%- set arguments = [] -%}
{%- for value in positional -%}{%- do arguments.append(pkdp.literal(value)) -%}{%- endfor -%}
{%- for key, value in named.items() -%}{%- do arguments.append('"' ~ key | replace('"', '""') ~ '" := ' ~ pkdp.literal(value)) -%}{%- endfor -%}
{{ name }}({{ arguments | join(', ') }})
{%- endmacro -%}

{#- A constant of SQL: none, true, a number, a text, a list, or a dictionary, which is a struct. -#}
{%- macro literal(value) -%}
{%- if value is undefined -%}
{{ exceptions.raise_compiler_error("pkdp: an argument is a name that is not defined: write texts in quotes.") }}
{%- elif value is none -%}NULL
{%- elif value is boolean or value is number -%}{{ value | string | lower }}
{%- elif value is string -%}'{{ value | replace("'", "''") }}'
{%- elif value is mapping -%}
{%- set fields = [] -%}
{%- for key, inner in value.items() -%}{%- do fields.append(pkdp.literal(key | string) ~ ': ' ~ pkdp.literal(inner)) -%}{%- endfor -%}
{{ '{' ~ fields | join(', ') ~ '}' }}
{%- else -%}
{%- set items = [] -%}
{%- for inner in value -%}{%- do items.append(pkdp.literal(inner)) -%}{%- endfor -%}
{{ '[' ~ items | join(', ') ~ ']' }}
{%- endif -%}
{%- endmacro -%}

{#- A number from 0 to `most`, also where YAML takes it for a text, as it does 1e-6. -#}
{%- macro number(name, value, most) -%}
{%- set given = value | float(none) -%}
{%- if value is boolean or given is none or not 0 <= given <= most -%}
{{ exceptions.raise_compiler_error(name ~ " must be a number from 0 to " ~ most ~ ": write one, as 0.5.") }}
{%- endif -%}
{{ given }}
{%- endmacro -%}
