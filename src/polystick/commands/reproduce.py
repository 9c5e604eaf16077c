"""`polystick reproduce`: the paper's figures and tables, beside what the paper says."""

import json
import warnings
from pathlib import Path

import click

from polystick.paper import PARTS


@click.command()
@click.argument("parts", nargs=-1, type=click.Choice([*PARTS, "all"]))
@click.option("--full/--quick", default=False,
              help="Settings near the paper's (an hour or two; the report says what differs), or for 10 "
              "minutes (default).")  # fmt: skip
@click.option("--out", default="reproduction", type=click.Path(file_okay=False, path_type=Path),
              show_default=True, help="Folder for pictures, tables and the report.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def reproduce(parts, full, out, as_json):
    """Reproduce PARTS of the paper (default: all) and write a report.

    The folder gets PNG, SVG and CSV of each picture, and REPRODUCTION.md and report.html, which set what
    the paper says beside ours. Data that are not bundled are read from the folder that POLYSTICK_DATA
    names, or downloaded; without either a part is skipped. The exit code is 1 if a part failed, or was
    skipped though you asked for it by name.

    Example: polystick reproduce figure1 appendix --quick --out reproduction
    """
    names = PARTS if not parts or "all" in parts else tuple(p for p in PARTS if p in parts)
    outcomes = _run(names, out, full)
    if as_json:
        click.echo(json.dumps(_records(outcomes, out), indent=1, ensure_ascii=False))
    else:
        _tell(outcomes, out)
    raise SystemExit(int(any(_is_bad(outcome, parts) for outcome in outcomes)))


def _run(names, out, full):
    try:
        import matplotlib
    except ImportError:
        raise click.ClickException(
            "pictures need matplotlib: pip install 'polystick[plot]'"
        ) from None
    from sklearn.exceptions import ConvergenceWarning

    from polystick import paper

    matplotlib.use("Agg")
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / "REPRODUCTION.md").touch()
    except OSError as error:
        sentence = f"the folder must be one that can be written to; got {out}: {error.strerror}"
        raise click.BadParameter(sentence, param_hint="--out") from None
    with warnings.catch_warnings():  # runs are as long as the paper's; the page tells how long
        warnings.simplefilter("ignore", ConvergenceWarning)
        return paper.reproduce(names, out, full, lambda sentence: click.echo(sentence, err=True))


def _is_bad(outcome, asked):
    return outcome.status == "failed" or (outcome.status == "skipped" and outcome.name in asked)


def _records(outcomes, out):
    from polystick.paper import report

    ran = {outcome.name for outcome in outcomes}
    records = [record for record in report.read_records(out) if record["name"] in ran]
    return {"folder": str(out), "report": str(out / "report.html"), "parts": records}


def _tell(outcomes, out):
    from polystick.paper import report

    for record in _records(outcomes, out)["parts"]:
        if record["status"] != "done":
            click.echo(f"{record['name']:10} {record['status']}: {record['sentence']}")
            continue
        found = report.count_verdicts(record["lines"])
        click.echo(f"{record['name']:10} done in {record['seconds']:.0f} s: {found}")
        for line in record["lines"]:
            click.echo(
                f"  {line['verdict']:17} {line['what']}: {line['ours']} (paper: {line['paper']})"
            )
    click.echo(f"report: {out / 'report.html'}")
