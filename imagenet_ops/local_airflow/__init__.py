"""An Airflow of one's own on this machine: no root, no container, no network but the loopback."""
