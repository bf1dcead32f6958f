"""A stand-in for pyspark 3.5, as far as python/frameworks/spark.py uses it."""
