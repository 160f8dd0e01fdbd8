"""The tool `browser`: a Chromium of its own behind the guard of the network, its pages told as text."""
