"""Options as the user writes them, and which of them would do nothing."""

from pathlib import Path

from polystick.commands.packed import ending_of

__all__ = ["refuse_idle", "settle_length", "spelled"]

_TABLES, _MATRICES, _LINES = (".csv", ".tsv", ".parquet"), (".npz", ".mtx"), (".jsonl",)
_USED = {  # option -> endings of the files that it is for
    "ignore": _TABLES,
    "name": _TABLES,
    "value": _TABLES,
    "vocabulary": _MATRICES,
    "field": _LINES,
    "text": _TABLES,
}
_OF_TEXTS = ("stop_words", "min_df", "max_df")


def spelled(name):
    """Return an option as it stands on the command line."""
    return f"--{name.replace('_', '-')}"


def settle_length(given, options):
    """Return the options with one rule for the length: --draws alone is fixed, --min-ess ends when done.

    given : option -> value on the command line, None where it was left out
    """
    if given["draws"] is not None and given["min_ess"] is None:
        options = {**options, "min_ess": 0}
    if not options["min_ess"]:
        if given["max_draws"] is not None:
            raise ValueError("--max-draws must come with --min-ess; a fixed length is --draws")
        return {**options, "max_draws": None}
    if given["min_ess"] is not None and given["max_draws"] is None:
        return {**options, "max_draws": max(options["max_draws"] or 0, 10 * options["draws"])}
    return options


def refuse_idle(path, given, options):
    """Refuse options that would do nothing.

    given : option -> value on the command line, None where it was left out
    options : the same with those of the run
    """
    ending, is_long = ending_of(Path(path)), options.get("name") is not None
    chosen = [name for name, value in given.items() if value is not None]
    for name in chosen:
        if ending not in _USED.get(name, (ending,)):
            raise ValueError(f"{spelled(name)} is for {', '.join(_USED[name])}; got {path}")
    idle = [name for name in _OF_TEXTS if name in chosen]
    if idle and not _has_texts(Path(path), ending, options):
        raise ValueError(
            f"{spelled(idle[0])} is for texts: .txt, .jsonl, a folder, or a table with --text; got {path}"
        )
    if "value" in chosen and not is_long:
        raise ValueError("--value must come with --name, the column with the category")
    if "max_words" in chosen and ending in _TABLES and not (is_long or options.get("text")):
        raise ValueError(f"--max-words is for words, matrices and --name; {path} has columns")
    if options["mean_field"] and options.get("svi"):
        raise ValueError("--svi and --mean-field are two ways; leave one of them out")
    if options.get("prevalence") and (options["mean_field"] or options.get("svi")):
        way = "--mean-field" if options["mean_field"] else "--svi"
        raise ValueError(f"--prevalence must be sampled; leave {way} out")
    if options.get("groups") and options.get("prevalence", "") is None:
        raise ValueError(
            "--groups of topics must come with --prevalence; give --prevalence 1 where shares depend on "
            "nothing else"
        )
    if options["mean_field"] and options.get("formula"):
        raise ValueError("a regression must be sampled; leave --mean-field out")
    if options["mean_field"] and options.get("link") == "softmax":
        raise ValueError("--link softmax must be sampled; leave --mean-field out")
    if options["mean_field"] and options.get("covariance") == "factor":
        raise ValueError("--covariance factor must be sampled; leave --mean-field out")
    idle = [name for name in ("burn", "chains", "min_ess", "max_draws") if name in chosen]
    way = "svi" if options.get("svi") else "mean_field"
    if idle and options.get(way):
        raise ValueError(f"{spelled(idle[0])} is for sampling; leave it out with {spelled(way)}")


def _has_texts(path, ending, options):
    is_column = ending in _TABLES and options.get("text") is not None
    is_folder = path.is_dir() and not any(path.glob("part-*.npz"))
    return ending in (".txt", *_LINES) or is_column or is_folder
