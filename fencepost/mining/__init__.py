"""Judging traces on Spark: the only folder that imports pyspark, and only when it is used.

Splits (splits.py) are handed to Spark tasks, which read them with PyArrow and run the plain checker's judges
(spark_judge.py), write what they found as Parquet (results.py) and answer with counts; mine.py is the driver,
session.py starts Spark.
"""
