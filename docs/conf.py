"""How the documentation is built: `make docs`."""

import re
import sys
from pathlib import Path

import redescend

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "redescend"
author = "the redescend developers"
copyright = "2026, the redescend developers"  # noqa: A001
version = release = redescend.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "commands",
    "outside",
]
exclude_patterns = ["_build", "gallery/*.md5", "gallery/*.json", "inventories"]
templates_path = ["_templates"]
smartquotes = False  # -- begins an option
suppress_warnings = ["config.cache"]  # sphinx-gallery's settings contain functions, which Sphinx cannot compare

# Pages are Markdown that a forge shows as well.
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 3

# The reference: one page for each public name.
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_mock_imports = ["torch", "mlflow", "onnx"]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"  # words that are no names
toc_object_entries_show_parents = "hide"
numpydoc_xref_aliases = {
    "array": "numpy.ndarray",
    "arrays": "numpy.ndarray",
    "Generator": "numpy.random.Generator",
    "Path": "pathlib.Path",
    "Transform": "redescend.transforms.Transform",
    "Loss": "redescend.losses.Loss",
    "LinearLoss": "redescend.losses.LinearLoss",
    "Domain": "redescend.domains.Domain",
    "Step": "redescend.steps.Step",
    "Gate": "redescend.gates.Gate",
    "Stream": "redescend.Stream",
    "Trace": "redescend.Trace",
    "Learner": "redescend.Learner",
}

# Inventories are files of this folder, so that building needs no network.
intersphinx_mapping = {
    "python": ("https://docs.python.org/3", "inventories/python.inv"),
    "sklearn": ("https://scikit-learn.org/stable", "inventories/sklearn.inv"),
    "numpy": ("https://numpy.org/doc/stable", "inventories/numpy.inv"),
    "river": ("https://riverml.xyz/latest", "inventories/river.inv"),
}

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": "/plot_",
    "within_subsection_order": "FileNameSortKey",
    "reset_modules": ("matplotlib", "gallery_style.reset"),
    "reference_url": {"redescend": None},
    "doc_module": ("redescend",),
    "backreferences_dir": "gallery/used",
    "inspect_global_variables": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1000,
    "download_all_examples": False,
    "abort_on_example_error": True,
    "plot_gallery": True,
    "thumbnail_size": (480, 300),
}

html_theme = "pydata_sphinx_theme"
html_title = "redescend"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = False  # pages that are opened from a disk may not fetch each other
html_sidebars = {"index": [], "changelog": [], "install": [], "tour": []}
html_theme_options = {
    "logo": {"text": "redescend"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_prev_next": False,
    "navigation_with_keys": False,
    "show_toc_level": 1,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def skip_members_of_others(app, what, name, member, skip, options):
    """Pages of classes leave out constants, and what they inherit from scikit-learn, River or PyTorch."""
    if name.isupper():
        return True
    member = getattr(member, "fget", member) or member
    home = getattr(member, "__module__", "") or ""
    return True if home and not home.startswith("redescend") else None


def escape_bars(app, what, name, obj, options, lines):
    """|x| is an absolute value in docstrings, not a substitution."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = line.split("``")
            parts[::2] = [re.sub(r"(?<!\\)\|", r"\\|", part) for part in parts[::2]]
            lines[i] = "``".join(parts)


def setup(app):
    app.connect("autodoc-process-docstring", escape_bars, priority=900)  # after numpydoc
    app.connect("autodoc-skip-member", skip_members_of_others)
