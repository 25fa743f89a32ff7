"""Pure decisions: no I/O, no clock, no airflow, no mxnet, no cv2."""
