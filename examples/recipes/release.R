# R: a release and its certificate, by arrow and by DuckDB. The file is what release.to_parquet("week.parquet") wrote.
counts <- arrow::read_parquet("week.parquet", as_data_frame = FALSE)
print(as.data.frame(counts))
certificate <- jsonlite::fromJSON(counts$metadata[["pkdp.certificate"]])
print(certificate$sentence)

con <- DBI::dbConnect(duckdb::duckdb())
print(DBI::dbGetQuery(con, "FROM 'week.parquet' ORDER BY count DESC"))
print(DBI::dbGetQuery(con, "SELECT decode(value) FROM parquet_kv_metadata('week.parquet') WHERE decode(key) = 'pkdp.certificate'"))
DBI::dbDisconnect(con, shutdown = TRUE)
