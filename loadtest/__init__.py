"""Load on a running cluster: beside Apache Kafka (`make versus`), and by locust."""
