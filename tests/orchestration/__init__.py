"""Tests of the Airflow skin."""
