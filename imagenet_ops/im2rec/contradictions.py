"""What im2rec.py takes without a word though it can't be meant; the bytes stay the same, so these are warnings."""

from __future__ import annotations

from collections.abc import Iterator

from imagenet_ops.im2rec.options import Im2recOptions
from imagenet_ops.records.texts import format_name

_ROUNDING = 1e-9  # 0.7 + 0.2 + 0.1 is not 1
_QUALITIES = {".jpg": (1, 100), ".png": (0, 9)}
_PIXEL_OPTIONS = {"resize": 0, "center_crop": False, "quality": 95, "color": 1, "encoding": ".jpg"}


def find_contradictions(options: Im2recOptions) -> Iterator[str]:
    """One text each, that begins with the option."""
    yield from _in_list_options(options) if options.makes_lists else _in_record_options(options)


def _in_list_options(options: Im2recOptions) -> Iterator[str]:
    train, test = options.train_ratio, options.test_ratio
    if train == 1 and test:
        yield f"--test-ratio {test:g}: counts only with a --train-ratio; no list for testing is written"
    elif train + test > 1 + _ROUNDING:
        yield f"--train-ratio {train:g}, --test-ratio {test:g}: more than 1 together; training gets what testing leaves"
    if options.prefix.is_dir():
        yield (
            f"PREFIX {format_name(options.prefix)}: is a folder; the lists are written beside it, "
            "but without --list those inside it will be packed"
        )


def _in_record_options(options: Im2recOptions) -> Iterator[str]:
    least, greatest = _QUALITIES[options.encoding]
    if options.pass_through:
        for name, default in _PIXEL_OPTIONS.items():
            if getattr(options, name) != default:
                yield f"--{name.replace('_', '-')}: has no effect with --pass-through"
    elif not least <= options.quality <= greatest:
        taken = min(max(options.quality, least), greatest)
        yield f"--quality {options.quality}: {options.encoding} goes from {least} to {greatest}; {taken} is taken"
    if options.num_thread < 1:
        yield f"--num-thread {options.num_thread}: one process packs"
