"""Parts of a folder of traces: three Parquet files each, written together and read a row group at a time."""
