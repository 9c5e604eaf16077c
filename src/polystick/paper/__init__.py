"""The paper's figures and tables, one module each, from public data and the public interface only.

A module `paper.<part>` has `run(full, say)`, which returns a `Part`. `reproduce` runs parts and writes what
they found as each ends.
"""

import importlib
import traceback
from typing import NamedTuple

PARTS = ("figure1", "topics", "names", "sequences", "appendix")


class Outcome(NamedTuple):
    """How a part ended."""

    name: str
    status: str  # "done", "skipped" (its data are not here) or "failed"
    sentence: str  # why not, else ""


def reproduce(parts, folder, full=False, say=print):
    """Run parts of the paper and write pictures, tables and a report.

    Parameters
    ----------
    parts : sequence of names from PARTS
    folder : pathlib.Path
        Each part's files are written when it ends, whatever becomes of the next. Parts that are there from
        earlier runs stay in the report.
    full : bool
        Whether to use settings near the paper's; else settings for minutes.
    say : callable(str)
        Told of the progress.

    Returns
    -------
    list of Outcome
    """
    from polystick.paper import report

    folder.mkdir(parents=True, exist_ok=True)
    report.read_records(folder)  # fails now rather than after hours
    outcomes = []
    for name in parts:
        say(f"{name}: started")
        outcome = _one(name, folder, full, say)
        outcomes.append(outcome)
        report.write_pages(folder)
        say(f"{name}: {outcome.status}" + (f". {outcome.sentence}" if outcome.sentence else ""))
    return outcomes


def _one(name, folder, full, say):
    """Run a part and write its files, or why there are none."""
    from polystick.paper import report

    try:
        module = importlib.import_module(f"polystick.paper.{name}")
        part = module.run(full, lambda sentence: say(f"{name}: {sentence}"))
        report.write_part(folder, part, full)
        return Outcome(name, "done", "")
    except Exception as error:  # the other parts go on
        if _lacks_data(error):
            outcome = Outcome(name, "skipped", str(error))
        else:
            log = folder / f"{name}_error.txt"
            log.write_text(traceback.format_exc(), encoding="utf-8")
            outcome = Outcome(name, "failed", f"{type(error).__name__}: {error} (see {log.name})")
    report.write_absence(folder, outcome)
    return outcome


def _lacks_data(error):
    """Say whether it is what datasets raise where there is no file, nor a way to download it."""
    no_downloader = (
        isinstance(error, ImportError) and getattr(error.__cause__, "name", "") == "pooch"
    )
    return isinstance(error, FileNotFoundError) or no_downloader
