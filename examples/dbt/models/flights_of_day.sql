SELECT * FROM '../data/flights_2013.parquet' WHERE date = '{{ var("day") }}'
