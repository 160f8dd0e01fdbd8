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
YES, CANCEL, SAVE, CLOSE, SEARCH, MORE = "Yes", "Cancel", "Save", "Close", "Search", "Show more"
NEVER = "never"

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
CHAT_SAY, CHAT_MAIN, CHAT_WHICH = "Message", "Main conversation", "Which chat"
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

SESSIONS_SEARCH = "Search in what was said"
SESSIONS_STATES = {"": "All", "live": "Going on", "ended": "Ended"}
SESSIONS_LIVE, SESSIONS_ENDED, SESSIONS_TURNS = "goes on", "ended ({why})", "{count} turns"
SESSION_OPEN, SESSION_CONTEXT, SESSION_EXPORT = "Open the chat", "Context", "Export {form}"
SESSION_LABELS = "Labels"

APPROVALS_NONE = "Nothing waits for your word."
APPROVALS_ALWAYS, APPROVALS_PAST = "What you said yes to for good", "Decided last"
APPROVALS_SINCE, APPROVALS_REVOKE = "{agent}, since {when}", "Ask again"
OUTCOMES = {
    "once": "yes, once",
    "always": "yes, always",
    "deny": "no",
    "answer": "answered",
    "expired": "nobody answered in time",
    "ended": "its turn ended first",
}

MEMORY_WAITING, MEMORY_ENTRIES = "Waits for your word: strangers had a part in it", "Remembered"
MEMORY_CONFIRM, MEMORY_REJECT, MEMORY_EDIT, MEMORY_FORGET = "Take in", "Throw away", "Edit", "Forget"
MEMORY_FORGET_SURE = "Forget this everywhere it can be reached, for good?\n\n{text}"
MEMORY_NEW, MEMORY_ADD = "Something to remember", "Remember"
MEMORY_YOURS, MEMORY_STRANGERS = "yours", "strangers had a part in it"
MEMORY_CHANGES, MEMORY_UNDO, MEMORY_HISTORY = "Changes that can be taken back", "Take back the newest", "History"

JOBS_NONE = "There are no jobs."
JOBS_TEXT, JOBS_WHEN, JOBS_ADD = "What is to be done", "When: tomorrow 9:00, every 2h, 30 8 * * 1-5", "Add"
JOBS_SAYS = "Say it word for word"
JOB_ACTS = {"pause": "Pause", "resume": "Resume", "run": "Run now", "remove": "Remove"}
JOBS_REMOVE_SURE = "Remove the job {name}? What it did stays in the history."
JOBS_CALENDAR, JOBS_HISTORY = "The next {days} days", "History"
JOBS_TIMES, JOBS_SLOTS = " ({count} times)", "{count} slots"

CONTEXT_WHICH, CONTEXT_MODEL, CONTEXT_TOTAL, CONTEXT_PROMPT = "Conversation", "Model", "Tokens", "Prompt"
CONTEXT_OF = "{total:,} of {limit:,} that it may have (window {window:,})"
CONTEXT_TOKENS = "{tokens:,} tokens"
CONTEXT_CACHE, CONTEXT_HITS, CONTEXT_LAST_BREAK = "Cache", "Read from the cache", "Last break"
CONTEXT_NO_CACHE = "this service keeps none"
CONTEXT_POINTS = (
    "kept {minutes} min; ends after instructions and tools ({prefix:,} tokens) and after the newest message"
)
CONTEXT_UNREAD, CONTEXT_NO_BREAK = "nothing was read yet", "The beginning of the requests has never changed."
CONTEXT_SECTIONS, CONTEXT_BREAKS, CONTEXT_DEFERRED = "Sections", "Breaks of the cache", "Tools to be sought"

USAGE_BY, USAGE_LAST = "By", "Last"
USAGE_GROUPS = {"day": "Day", "model": "Model", "channel": "Channel", "agent": "Agent", "session": "Conversation"}
USAGE_DAYS = {1: "Today", 7: "7 days", 30: "30 days", 365: "A year"}
USAGE_MONEY, USAGE_TOKENS, USAGE_HITS = "Money ($)", "Tokens", "From the cache (%)"
USAGE_COLUMNS = ("Who or when", "Requests", "Tokens in", "From the cache", "Tokens out", "Money")
USAGE_LEFT_OUT = "{count:,} that used less are left out here; the sum has them."

CHANNEL_FLOW = "since {since}; last in {received}, last out {sent}"
PAIR_CODES, PAIR_PEOPLE, PAIR_QR = "Codes that wait", "Who may speak", "the code as a QR code"
PAIR_NONE = "Nobody asks. Who writes to your bot is given a code, which is shown here."
PAIR_UNTIL, PAIR_SINCE = "until {when}", "{role} since {when}, by {by}"
PAIR_PEER, PAIR_OWNER, PAIR_DISMISS, PAIR_REVOKE = "Let in", "It is me", "Dismiss", "Revoke"
PAIR_OWNER_SURE = "Whoever has this code may then do all that you may. Is it you?"
PAIR_REVOKE_SURE = "{name} may then not speak to the agents any more."
OUTBOX, OUTBOX_NONE = "On its way, or not arrived", "Nothing waits, and everything has arrived."
OUTBOX_RETRY, OUTBOX_DROP = "Send after all", "Drop"

AGENT_MODEL, AGENT_WORKSPACE, AGENT_CHOSEN = "Model", "Workspace", "chosen by what is at hand"
AGENT_TOOLS = "{count} tools"
SKILLS, SERVERS = "Skills", "MCP servers"
SKILL_ORIGIN, SKILL_FILE, SKILL_SOURCE, SKILL_NEEDS = "Found in", "File", "Installed from", "Needs"
SKILL_CLEAN = "The scan finds nothing in its files."

POLICY_HOW = (
    "`limpet policy explain` says what is decided of one call, `limpet policy simulate` what other rules would say."
)
POLICY_PROFILES, POLICY_COMMANDS, POLICY_RULES = "Which tools there are", "Commands", "Your rules"
POLICY_ALLOWED, POLICY_OTHERS, POLICY_DEFAULTS = "allowed", "others", "Where no rule of yours fits"
POLICY_NO_RULES = "There are none."

SETTINGS_HOW = "What is in force. Changes are written to {path}, whose comments stay; most count within two seconds."
SETTING_NAME, SETTING_VALUE = "Name of a setting", "Value"
SETTING_SAVED, SETTING_DEFAULT, SETTING_HIDDEN = "Saved.", "Default", "hidden"

AUDIT, AUDIT_HOLDS = "Audit", "All chains hold: nobody has changed, moved or taken out a row."
