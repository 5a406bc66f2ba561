"""Reports: one HTML file with tables and figures, and the figures beside it.

`document` is what a report is made of, `page` turns it into HTML. `of_sweep`, `of_run`, `of_trace` and
`of_environment` make its parts from what was measured; `whole` puts them together.
"""
