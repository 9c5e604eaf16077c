"""The demonstration: what presidents speak about, and which topics go together, in about a minute."""

import time

import click

from polystick import CorrelatedTopicModel, Gibbs, datasets, warm_up
from polystick.commands import diagnosis, pictures, plot, views

N_TOPICS = 24
_NEXT = """\
next:
  polystick reproduce figure1 --quick --out paper     a figure of the paper
  polystick fit topics FILE --topics 20 --out run     topics of your own texts (polystick fit --help)
  polystick fit gp FILE --inputs year --out run       shares that change smoothly with time"""


_FIRST = "click on a topic of the map, then move the slider of its words; / searches a word"


def run(folder, *, quick=False, is_opened=False):
    """Fit, print tables, write a picture and a page."""
    plot.pyplot()  # before the work, which would be lost without it
    folder.mkdir(parents=True, exist_ok=True)
    addresses, n_topics, sweeps = datasets.load_state_of_the_union(), N_TOPICS, 200
    counts, words, years = addresses.counts, addresses.words, addresses.years
    if quick:
        counts, words, n_topics, sweeps = counts[::10, :1000], words[:1000], 6, 15
        years = years[::10]
    begin, end = addresses.years[[0, -1]]
    click.echo(f"State of the Union addresses, {begin} to {end}: {counts.shape[0]} passages,")
    click.echo(f"{counts.sum()} words, {counts.shape[1]} of them different; {n_topics} topics\n")
    click.echo("compiling (the first time only) and starting ...", err=True)
    warm_up("topics")
    begun = time.perf_counter()
    inference = Gibbs(n_draws=sweeps, n_burn=sweeps, n_chains=1)
    model = CorrelatedTopicModel(n_topics, inference=inference, random_state=1)
    with diagnosis.warnings_as_notes():
        model.fit(counts)
    click.echo(f"fitted in {time.perf_counter() - begun:.0f} seconds\n")
    association = model.topic_association(counts)
    _print_tables(model, words, association)
    click.echo(f"picture: {_draw(model, words, association, folder)}\n\n{_NEXT}")
    more = {"documents": counts, "words": words, "times": years, "association": association}
    page = model.report(folder / "page.html", title="State of the Union addresses", **more)
    click.echo(
        f"\nthe explorer: {page}\n  open it in a browser (polystick demo --open does); {_FIRST}"
    )
    if is_opened:
        click.launch(str(page))


def _print_tables(model, words, association):
    click.echo("What they speak about: share of all words, and likeliest words")
    for _, share, likeliest in views.topic_table(model, words, 7).itertuples(index=False):
        click.echo(f"  {share:5.1%}  {' '.join(likeliest)}")
    labels = views.topic_labels(model, words)
    pairs = views.known_pairs(association.table(None), 10, labels)
    click.echo("\nTopics that go together in passages, or apart: association (90 % interval)")
    for r, lower, upper, one, other in pairs.itertuples(index=False):
        click.echo(f"  {r:+.2f} ({lower:+.2f} to {upper:+.2f})  {one}  |  {other}")
    click.echo()


def _draw(model, words, association, folder):
    shares = model.topic_sizes()["share"]
    figure = pictures.graph_of_known(association, views.topic_labels(model, words), shares)
    _make_room(figure, 0.4)
    figure.suptitle("State of the Union addresses: topics that go together or apart")
    path = folder / "topics.png"
    figure.savefig(path, dpi=120)
    return path


def _make_room(figure, inches):
    """Make a figure taller; its axes stay as large as they are."""
    wide, high = figure.get_size_inches()
    place, share = figure.subplotpars, high / (high + inches)
    figure.set_size_inches(wide, high + inches)
    figure.subplots_adjust(bottom=place.bottom * share, top=place.top * share)
