"""The Airflow skin: the only code that imports airflow."""
