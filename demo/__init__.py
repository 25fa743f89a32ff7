"""The demo: 2,624 real images, from an archive to a trained classifier, through a real Airflow on this machine."""
