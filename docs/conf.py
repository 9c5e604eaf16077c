"""Sphinx settings: Markdown pages, docstrings by numpydoc, formulas as MathML (no network, no TeX)."""

from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.utils.math.latex2mathml import tex2mathml

import polystick

EXPLORERS = Path(__file__).with_name("_extra") / "explorers"  # made by tools/make_gallery.py

project = "polystick"
author = "The polystick developers"
copyright = author
version = release = polystick.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc"]
exclude_patterns = ["_build", "_extra"]

myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autosummary_generate = False
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "pydata_sphinx_theme"
html_title = "polystick"
html_static_path = ["_static"]
html_extra_path = ["_extra"] if EXPLORERS.exists() else []
html_css_files = ["math.css", "gallery.css"]
html_show_sourcelink = False
html_sidebars = {"**": []}
html_math_renderer = "mathml"
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
}


def write_inline_formula(writer, node):
    writer.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def write_formula(writer, node):
    formula = tex2mathml(node.astext().strip(), as_block=True)
    writer.body.append(f'<div class="math-block">{formula}</div>\n')
    raise nodes.SkipNode


def escape_bars(app, what, name, obj, options, lines):
    """Keep |cov| a determinant: in reStructuredText bars mark a substitution."""
    lines[:] = [line.replace("|", r"\|") for line in lines]


class Explorer(Directive):
    """The page of a fit of the gallery, in a frame; it works without a network, so it may be sandboxed."""

    required_arguments = 1

    def run(self):
        name = self.arguments[0]
        if not (EXPLORERS / f"{name}.html").exists():
            said = "The explorer of this fit is made by `make docs`."
            return [nodes.paragraph(said, said)]
        link = f"../explorers/{name}.html"
        frame = f'<iframe class="explorer" title="Explorer" loading="lazy" src="{link}"></iframe>'
        below = f'<p><a href="{link}">The explorer by itself</a></p>'
        return [nodes.raw("", frame + below, format="html")]


def setup(app):
    app.add_directive("explorer", Explorer)
    app.connect("autodoc-process-docstring", escape_bars, priority=900)  # after numpydoc
    app.add_html_math_renderer("mathml", (write_inline_formula, None), (write_formula, None))
