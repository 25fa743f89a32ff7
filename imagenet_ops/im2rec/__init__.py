"""`imagenet-ops im2rec`: MXNet's im2rec.py for those who move over: its options, its lists, its records to the byte."""
