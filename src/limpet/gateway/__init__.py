"""The gateway: who answers, in which order, and that it arrives.

`intake` takes what channels bring, `lane` runs the turns, `delivery` sees to it that what they say arrives; `live`
shows it while it is written, `supervisor` keeps channels connected. `gateway` holds them together.
"""
