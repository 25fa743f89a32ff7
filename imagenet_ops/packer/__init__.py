"""Images into records on worker processes: in order, with bounded memory, and with every image accounted for."""
