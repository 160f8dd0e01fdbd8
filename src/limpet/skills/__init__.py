"""Skills: folders with a SKILL.md that say how to do something. Found, gated, granted, installed with a scan."""
