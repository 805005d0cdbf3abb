"""`agentic-gym data alfworld`: where the data of ALFWorld goes, and rebuilding it from ALFRED."""

from __future__ import annotations

import os
from pathlib import Path

from agentic_gym.envs.alfworld.alfred import rebuild_folder
from agentic_gym.envs.alfworld.generator import SPLITS, write_games
from agentic_gym.envs.alfworld.tasks import DATA_VERSION, default_folder
from agentic_gym.ranges import Natural, check

__all__ = ["prepare_data"]


def prepare_data(source: str | Path | None = None, out: str | Path | None = None, *, generate: int = 0) -> str:
    """Fill a folder with games and say what was done.

    Args:
        source: ALFRED's data (folders with `traj_data.json`, or the condensed `<split>.jsonl.gz`); None rebuilds nothing.
        out: the folder to fill; None is ALFWORLD_DATA, or ~/.cache/alfworld.
        generate: write this many generated games a split, under `generated/`.

    Raises ValueError for a negative ``generate``.

    Returns:
        A report for people. Without `source` and `generate` nothing is written, and the report says where files belong.
    """
    check("generate", generate, Natural)
    folder = Path(os.path.expandvars(str(out or default_folder()))).expanduser()
    lines = []
    if source is not None:
        for split, counts in rebuild_folder(source, folder).items():
            rest = ", ".join(f"{n} {why}" for why, n in sorted(counts.items()) if why != "rebuilt")
            lines.append(
                f"{split}: {counts['rebuilt']} games rebuilt from ALFRED" + (f"; left out: {rest}" if rest else "")
            )
        lines.append(f"They are in {folder / DATA_VERSION}. Call results on them: rebuilt from ALFRED.")
    if generate:
        for split in SPLITS:
            for _ in write_games(folder / "generated", generate, split=split):
                pass
        lines.append(f"{generate} generated games a split are in {folder / 'generated'}.")
    if lines:
        return "\n".join(lines)
    found = "found" if (folder / DATA_VERSION).is_dir() else "not there yet"
    return (
        f"ALFWorld's games belong into {folder / DATA_VERSION}/{{train,valid_seen,valid_unseen}} ({found}).\n"
        "The folder is $ALFWORLD_DATA, or ~/.cache/alfworld. Three ways to fill it:\n"
        "  ALFWorld's own games: pip install alfworld, then alfworld-download\n"
        "  rebuilt from ALFRED:  agentic-gym data alfworld --from FOLDER_OF_ALFRED\n"
        "  generated:            agentic-gym data alfworld --generate 1000\n"
        "Without any of this the environment plays generated games."
    )
