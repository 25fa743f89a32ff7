"""From an archive of images to a trained classifier, as one Airflow pipeline."""
