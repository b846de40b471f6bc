"""The commands of `mobula`, one file for each group.

What takes long to import (rich, confluent-kafka, Ray) is imported where it is used, so
that `mobula --help` is quick.
"""
