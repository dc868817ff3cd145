{{ config(materialized='table') }}

SELECT * FROM pkdp_histogram('{{ ref("flights_of_day") }}', 'carrier', k := 50)
