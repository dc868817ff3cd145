"""The documentation's site: ``sphinx-build -W -n -b html docs build/site``.

What is built loads nothing from elsewhere and can be read from a folder.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))
sys.path.insert(0, str(HERE.parent))

from pkdp_pipeline.schemas import VERSION  # noqa: E402 (the checkout comes first)

project = "pkdp_pipeline"
author = "The pkdp_pipeline authors"
project_copyright = author
version = release = VERSION

extensions = [
    "sphinx.ext.autodoc",
    "myst_parser",
    "code_role",
    "command_line",
    "docstrings",
    "job_keys",
    "repository_links",
]
exclude_patterns = ["_extensions", "_static"]
language = "en"

# Docstrings write `name` as Markdown does: a link where the name is documented, else code.
default_role = "pkdp"
highlight_language = "text"
smartquotes_action = "D"  # dashes alone; quotation marks stay as they are written

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say it, in words
autodoc_class_signature = "mixed"
# Other programs that these modules plug into; they live in environments of their own.
autodoc_mock_imports = ["airflow", "dagster", "dbt", "dbt_common"]

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

html_theme = "furo"
pygments_dark_style = "github-dark"
toc_object_entries_show_parents = "hide"
html_title = f"pkdp_pipeline {VERSION}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
# Summaries of found pages are fetched, which a browser refuses for pages that were opened as files.
html_show_search_summary = False
html_theme_options = {
    "top_of_page_buttons": [],
    "light_css_variables": {
        "color-brand-primary": "#0b4f8a",
        "color-brand-content": "#0b4f8a",
        "color-api-name": "#0b4f8a",
        "color-api-pre-name": "#5a5c63",
    },
    "dark_css_variables": {
        "color-brand-primary": "#8cc4f5",
        "color-brand-content": "#8cc4f5",
        "color-api-name": "#8cc4f5",
        "color-api-pre-name": "#9ca0a5",
    },
}
