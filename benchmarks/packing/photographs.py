"""Real photographs that the corpora are cut from: 37 JPEGs of Debian packages, fetched once without installing them.

    package                       photographs   licence
    lomiri-wallpapers-16.04                13   CC-BY-4.0, CC-BY-SA-4.0, CC0-1.0, by photographer
    lomiri-wallpapers-20.04                 1   CC-BY-SA-3.0
    mate-backgrounds                       12   GPL-2+
    plasma-workspace-wallpapers            11   GPL-2+

Each package's own `usr/share/doc/…/copyright` names the photographers. The packages' drawings, renderings and further
sizes of one photograph are left out. Nothing of it is part of this repository.

    .local/bench/photographs/*.jpg    a folder that has some already is taken as it is
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

FOLDER = Path(".local/bench/photographs")
_BACKGROUNDS = "usr/share/backgrounds/{}.jpg"
_PACKAGES = {
    "lomiri-wallpapers-16.04": (
        _BACKGROUNDS,
        "Bridge_by_Sander_Klootwijk Dragonfly_by_Bolly Picture_0B_by_freespace Picture_1A_by_freespace "
        "Wine_by_Jakkub_Mede aitzgorri_by_Aitzol_Berasategi free_by_Peter_Nerlich friends_by_Aitzol_Berasategi "
        "greentock_by_Peter_Nerlich life_by_Aitzol_Berasategi picosdeeuropa_by_Aitzol_Berasategi "
        "seeding_by_Clements_Engelhardt sunset_by_Aitzol_Berasategi",
    ),
    "lomiri-wallpapers-20.04": (_BACKGROUNDS, "Kleiber_by_Lukas_Baubkus"),
    "mate-backgrounds": (
        "usr/share/backgrounds/mate/nature/{}.jpg",
        "Aqua Blinds Dune FreshFlower Garden GreenMeadow LadyBird RainDrops Storm TwoWings Wood YellowFlower",
    ),
    "plasma-workspace-wallpapers": (
        "usr/share/wallpapers/{}/contents/images/2560x1600.jpg",
        "BytheWater ColdRipple ColorfulCups DarkestHour EveningGlow FallenLeaf Grey Kite OneStandsOut Path summer_1am",
    ),
}


def fetch_photographs() -> list[Path]:
    """The photographs, sorted. Ends the process with a word of advice where there are none and none can be had."""
    if not any(FOLDER.glob("*.jpg")):
        try:
            _fetch()
        except (OSError, subprocess.CalledProcessError) as error:
            detail = getattr(error, "stderr", None) or error
            raise SystemExit(
                f"the photographs come from the Debian packages {', '.join(_PACKAGES)}, and they can't be had here:\n"
                f"{detail}\nAny other JPEG photographs do: put a few dozen of at least 2048x1536 pixels, *.jpg, into "
                f"{FOLDER}"
            ) from error
    return sorted(FOLDER.glob("*.jpg"))


def _fetch() -> None:
    FOLDER.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER.parent) as name:
        scratch = Path(name)
        _run(["apt-get", "download", "-q", *_PACKAGES], scratch)
        for package in scratch.glob("*.deb"):
            _run(["dpkg", "-x", package.name, "unpacked"], scratch)
        chosen = scratch / "chosen"
        chosen.mkdir()
        for pattern, names in _PACKAGES.values():
            for photograph in names.split():
                shutil.copy(scratch / "unpacked" / pattern.format(photograph), chosen / f"{photograph}.jpg")
        chosen.replace(FOLDER)


def _run(command: list[str], folder: Path) -> None:
    subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
