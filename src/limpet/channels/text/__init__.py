"""Text of an answer for a chat platform: Markdown is parsed once, then written and cut in the platform's own way.

`document` parses, `table` lays tables out, `marks` and `html` are the ways of writing, `split` cuts, `render` is what
channels call.
"""
