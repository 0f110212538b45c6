"""Record batches: header, records, compression, control records, and files of batches."""
