"""One partition's log on disk, in Kafka's own formats."""
