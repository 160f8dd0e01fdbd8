"""Every text of the page, in one place."""

from __future__ import annotations

TITLE = "Limpet"
SKIP = "Skip to content"
MENU, DARK, LOGOUT = "Menu", "Light or dark", "Log out"
FAILED = "That did not work: {error}"
COPIED, UNCOPIED = "Copied.", "The browser does not let the page copy."
NOTHING = "Nothing here."
NO_PRICE = "price unknown"
ERASED = "[erased]"
LEFT_OUT = "\n[… {count:,} characters more]"
CANCEL, SAVE, CLOSE, SEARCH, MORE = "Cancel", "Save", "Close", "Search", "Show more"

NAV = {
    "/": ("Chat", "chat"),
    "/sessions": ("Sessions", "forum"),
    "/approvals": ("Approvals", "verified_user"),
    "/memory": ("Memory", "psychology"),
    "/schedule": ("Schedule", "event"),
    "/context": ("Context", "data_usage"),
    "/usage": ("Usage", "insights"),
    "/channels": ("Channels", "hub"),
    "/agents": ("Agents and tools", "smart_toy"),
    "/policy": ("Policy", "policy"),
    "/settings": ("Settings", "settings"),
    "/log": ("Log and audit", "receipt_long"),
}
"""Path: name and icon."""

LOGIN_TITLE = "Log in to Limpet"
LOGIN_HOW = "`limpet web` gives a link that logs you in. The token of the server does, or a password."
LOGIN_SECRET, LOGIN_TOKEN, LOGIN_ENTER = "Password or token", "Token", "Log in"
LOGIN_WRONG = "That is not right."
LOGIN_LOCKED = "Too many tries. Wait a minute."
LOGIN_LINK_OVER = "This link was used, or is too old. `limpet web` gives a new one."
NO_PAGE = "There is no such page."

MESSAGE = {
    "who_user": "You",
    "who_agent": "Limpet",
    "who_notice": "Notice",
    "who_note": "Note to the model",
    "who_summary": "Summary",
    "copy": "Copy",
    "edit": "Edit",
    "fork": "Fork",
    "label": "Label",
    "thinking": "Thinking",
    "code": "code",
    "table": "table",
    "diff": "Changes",
    "arguments": "Arguments",
    "output": "Output",
    "image": "picture",
    "waiting": "waiting",
    "running": "running",
    "done": "done",
    "failed": "failed",
}
"""What the component that shows a message says."""
REDUCED = {
    "summary": "Summary of what came before",
    "reduced": "Shortened without a summary",
    "window": "The oldest turns were dropped",
}
STOPS = {"length": "cut off by its length", "refusal": "refused", "cancelled": "stopped", "error": "failed"}
TOKENS = "{input:,} in, {output:,} out"
CACHED = "{tokens:,} cached"
AGAIN = "Once more: {reason}"

MESSAGES = "Messages"
CHAT_SAY = "Message"
CHAT_SEND, CHAT_STOP, CHAT_ATTACH = "Send", "Stop", "Attach files"
CHAT_EARLIER, CHAT_NEWEST = "Earlier messages", "Newest messages"
CHAT_NEW, CHAT_BRANCHES = "New chat", "Branches"
CHAT_EMPTY = "Say something. It is stored before anything else happens."
CHAT_WORKING, CHAT_WAITS, CHAT_STOPPED = "Working", "Waits for your word", "Stopped."
CHAT_EDIT = "Say it differently, in a copy of this conversation"
CHAT_LABEL, CHAT_LABELLED = "Name of this place", "Labelled."
CHAT_FORKED = "This is the copy: {name}."
CHAT_THIS_BRANCH, CHAT_GO = "shown", "Go on from here"
CHAT_BRANCH_HOW = "What was left behind stays. Going to another branch is written down like everything else."
CHAT_FILE_TOO_LARGE = "A file may have up to {size} MB."
CHAT_LEAVE_OUT = "Leave it out"

APPROVAL_WANTED = "Limpet needs your word"
APPROVAL_ONCE, APPROVAL_ALWAYS, APPROVAL_DENY, APPROVAL_ANSWER = "Yes, this once", "Yes, always", "No", "Answer"
APPROVAL_UNTIL = "until {when}, then it is a no"
