"""Recorded episodes of the event-driven clock: to be looked at, counted in, and run again bit for bit.

`recording` makes an `episode`, `file` keeps it on disk, `replaying` runs it once more and names the first difference.
`lanes` says who did what when, `perfetto` writes that for ui.perfetto.dev, `timeline` draws a part of it.
"""
