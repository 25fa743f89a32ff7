"""One file a step: read a manifest, ask domain, write through adapters, return a manifest."""
