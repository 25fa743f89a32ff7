"""`imagenet-ops records`: looks into RecordIO files of images and rewrites them, whoever wrote them."""
