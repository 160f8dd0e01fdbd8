"""The days that a question names: "on 7 May", "last Tuesday", "in 2023", 上周二, 五月七日."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta
from functools import cache

from msgspec import Struct

EPOCH = date(1970, 1, 1).toordinal()
_MONTHS = (
    "january jan januar janvier enero|february feb februar février febrero|march mar märz mars marzo"
    "|april apr avril abril|may mai mayo|june jun juni juin junio|july jul juli juillet julio"
    "|august aug août agosto|september sep sept septembre septiembre|october oct oktober octobre octubre"
    "|november nov novembre noviembre|december dec dezember décembre diciembre"
)
"""`may` and `mar` are months only beside a number, or after `in`, `last`, `since` and the like."""
MONTHS = {name: number for number, names in enumerate(_MONTHS.split("|"), 1) for name in names.split()}
_WEEKDAYS = (
    "monday mon montag|tuesday tue dienstag|wednesday wed mittwoch|thursday thu donnerstag|friday fri freitag"
    "|saturday sat samstag|sunday sun sonntag"
)
WEEKDAYS = {name: number for number, names in enumerate(_WEEKDAYS.split("|")) for name in names.split()}
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "ten": 10}
_HAN = {char: number for number, char in enumerate("零一二三四五六七八九十")} | {"两": 2, "\u3007": 0, "天": 7, "日": 7}
_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))


@cache
def _asks() -> re.Pattern[str]:
    return re.compile(
        r"\b(?:when|how long ago|what (?:date|day|month|year|time)|which (?:month|year)|wann|quand|cuándo)\b"
        r"|什么时候|何时|几点|几号|哪天|哪年|いつ|언제"
    )


@cache
def _tells() -> re.Pattern[str]:
    return re.compile(
        rf"\b(?:yesterday|today|tonight|tomorrow|ago|last|next|recently|since|just|week|weekend|month|gestern|heute|morgen"
        rf"|hier|demain|ayer|mañana|{'|'.join(sorted(WEEKDAYS, key=len, reverse=True))}|{_MONTH}"
        r"|this (?:week|month|year|morning|summer|winter)|\d{4}|\d{1,2}(?:st|nd|rd|th))\b"
        r"|[昨今明前后]天|上周|下周|星期|去年|今年|明年|\d月|\d日|\d点"
    )


def asks_when(question: str) -> bool:
    """Whether the answer is a time."""
    return bool(_asks().search(question.casefold()))


def tells_when(text: str) -> bool:
    """Whether `text` says when something was or will be."""
    return bool(_tells().search(text.casefold()))


class Days(Struct, frozen=True):
    """The days from `first` up to and including `last` (since 1970); with `yearly` those of every year."""

    first: int
    last: int
    yearly: bool = False

    def nearness(self, day: int, *, after: int) -> float:
        """1 for a day within, less for the `after` days behind: people tell of things some days later. Else 0."""
        first, last = self._in_year_of(day) if self.yearly else (self.first, self.last)
        if first - 1 <= day <= last:
            return 1.0
        if last < day < last + after:
            return 1 - (day - last) / after
        return 0.0

    def _in_year_of(self, day: int) -> tuple[int, int]:
        year = date.fromordinal(day + EPOCH).year
        begin = date.fromordinal(self.first + EPOCH)
        try:
            first = begin.replace(year=year).toordinal() - EPOCH
        except ValueError:  # 29 February
            first = date(year, 3, 1).toordinal() - EPOCH
        return first, first + self.last - self.first


def named_days(question: str, today: date) -> Days | None:
    """The first days that `question`, asked `today`, names; None when it names none."""
    text = question.casefold()
    for pattern, read in _readers():
        for match in pattern.finditer(text):
            try:
                found = read(match, today)
            except (ValueError, OverflowError):
                continue
            if found is not None:
                return found
    return None


def _days(first: date, length: int = 1) -> Days:
    start = first.toordinal() - EPOCH
    return Days(start, start + length - 1)


def _month(year: int, month: int) -> Days:
    following = date(year + month // 12, month % 12 + 1, 1)
    return _days(date(year, month, 1), (following - date(year, month, 1)).days)


def _day_of(day: str, month: int, year: str | None) -> Days:
    found = _days(date(int(year) if year else 2024, month, int(day)))
    return found if year else Days(found.first, found.last, yearly=True)


def _iso(match: re.Match[str], today: date) -> Days | None:
    year, month, day = int(match[1]), int(match[2]), match[3]
    return _days(date(year, month, int(day))) if day else _month(year, month)


def _spoken(match: re.Match[str], today: date) -> Days | None:
    day, month = (match["day"], match["month"]) if match["day"] else (match["later"], match["first"])
    return _day_of(day, MONTHS[month], match["year"] or match["year2"])


def _month_of_year(match: re.Match[str], today: date) -> Days | None:
    return _month(int(match[2]), MONTHS[match[1]])


def _month_alone(match: re.Match[str], today: date) -> Days | None:
    month = MONTHS[match["month"]]
    found = _month(2024, month)
    if match["which"] in ("this", "last", "letzten", "next"):
        year = today.year - (match["which"] != "this" and month >= today.month) + (match["which"] == "next")
        return _month(year, month)
    return Days(found.first, found.last, yearly=True)


def _year(match: re.Match[str], today: date) -> Days | None:
    year = int(match[1])
    return _days(date(year, 1, 1), 366 if date(year, 12, 31).timetuple().tm_yday == 366 else 365)


def _relative(match: re.Match[str], today: date) -> Days | None:
    """last/this + week, month, year or a weekday."""
    last, what = match["which"] in ("last", "past", "previous", "letzte", "letzten"), match["what"]
    if what in WEEKDAYS:
        back = (today.weekday() - WEEKDAYS[what]) % 7 or 7
        return _days(today - timedelta(days=back)) if last else _days(today - timedelta(days=back % 7))
    if what in ("week", "woche"):
        return _days(today - timedelta(days=today.weekday() + 7 * last), 7)
    if what == "weekend":
        return _days(today - timedelta(days=today.weekday() + (2 if last or today.weekday() < 5 else -5)), 2)
    if what in ("month", "monat"):
        first = today.replace(day=1)
        return _month(*_before(first)) if last else _month(first.year, first.month)
    year = today.year - last
    return _days(date(year, 1, 1), 365)


def _before(first: date) -> tuple[int, int]:
    earlier = first - timedelta(days=1)
    return earlier.year, earlier.month


def _ago(match: re.Match[str], today: date) -> Days | None:
    count = int(match[1]) if match[1].isdigit() else _NUMBERS[match[1]]
    unit = match[2]
    if unit.startswith("day"):
        return _days(today - timedelta(days=count))
    if unit.startswith("week"):
        middle = today - timedelta(days=7 * count)
        return _days(middle - timedelta(days=3), 7)
    days = 30 if unit.startswith("month") else 365
    middle = today - timedelta(days=days * count)
    return _days(middle - timedelta(days=days // 4), days // 2)


def _by_name(match: re.Match[str], today: date) -> Days | None:
    back = {
        "today": 0,
        "tonight": 0,
        "heute": 0,
        "今天": 0,
        "yesterday": 1,
        "gestern": 1,
        "昨天": 1,
        "前天": 2,
        "昨日": 1,
    }
    return _days(today - timedelta(days=back[match[0]]))


def _han_number(text: str) -> int:
    if text.isdigit():
        return int(text)
    tens, ten, ones = text.rpartition("十")
    if ten:
        return (_HAN[tens] if tens else 1) * 10 + (_HAN[ones] if ones else 0)
    return int("".join(str(_HAN[char]) for char in text))


def _han_date(match: re.Match[str], today: date) -> Days | None:
    year, month, day = match["year"], match["month"], match["day"]
    which = {"今年": today.year, "去年": today.year - 1, "前年": today.year - 2}.get(match["which"] or "")
    known = _han_number(year) if year else which
    if not month:
        return _days(date(known, 1, 1), 365) if known else None
    number = _han_number(month)
    if day:
        return _day_of(str(_han_number(day)), number, str(known) if known else None)
    found = _month(known or 2024, number)
    return found if known else Days(found.first, found.last, yearly=True)


def _han_relative(match: re.Match[str], today: date) -> Days | None:
    last = match[1] in ("上", "上个", "上個")
    if match[2] == "月":
        return _month(*_before(today.replace(day=1))) if last else _month(today.year, today.month)
    monday = today - timedelta(days=today.weekday() + 7 * last)
    return _days(monday + timedelta(days=_HAN[match[3]] - 1)) if match[3] else _days(monday, 7)


_NTH = r"(?:st|nd|rd|th|\.)?"


@cache
def _readers() -> tuple[tuple[re.Pattern[str], Callable[[re.Match[str], date], Days | None]], ...]:
    return (
        (re.compile(r"\b(\d{4})-(\d{2})(?:-(\d{2}))?\b"), _iso),
        (
            re.compile(
                rf"\b(?P<day>\d{{1,2}}){_NTH}\s+(?:of\s+)?(?P<month>{_MONTH})\b\.?,?(?:\s+(?P<year>\d{{4}}))?"
                rf"|\b(?P<first>{_MONTH})\b\.?\s+(?P<later>\d{{1,2}}){_NTH}\b(?!\d),?(?:\s+(?P<year2>\d{{4}}))?"
            ),
            _spoken,
        ),
        (re.compile(rf"\b({_MONTH})\b\.?,?\s+(?:of\s+)?(\d{{4}})\b"), _month_of_year),
        (
            re.compile(
                rf"\b(?P<which>in|im|en|during|last|this|next|since|until|of|early|late|mid|letzten)\s+(?P<month>{_MONTH})\b"
            ),
            _month_alone,
        ),
        (re.compile(r"\b(?:in|im|of|during|en|since)\s+((?:19|20)\d{2})\b"), _year),
        (re.compile(r"\b(?:today|tonight|heute|yesterday|gestern)\b|今天|昨天|前天|昨日"), _by_name),
        (
            re.compile(
                rf"\b(?P<which>last|past|previous|this|letzte|letzten|diese|on)\s+"
                rf"(?P<what>week|weekend|month|year|woche|monat|{'|'.join(WEEKDAYS)})\b"
            ),
            _relative,
        ),
        (re.compile(rf"\b(\d+|{'|'.join(_NUMBERS)})\s+(days?|weeks?|months?|years?)\s+ago\b"), _ago),
        (
            re.compile(
                r"(?:(?P<year>\d{4}|[零\u3007一二三四五六七八九]{4})年|(?P<which>今年|去年|前年))"
                r"(?:(?P<month>\d{1,2}|[一二三四五六七八九十]{1,2})月)?(?:(?P<day>\d{1,2}|[一二三四五六七八九十]{1,3})[日号])?"
            ),
            _han_date,
        ),
        (
            re.compile(
                r"(?P<year>(?!))?(?P<which>(?!))?(?<![\d一二三四五六七八九十])(?P<month>\d{1,2}|[一二三四五六七八九十]{1,2})月"
                r"(?:(?P<day>\d{1,2}|[一二三四五六七八九十]{1,3})[日号])?"
            ),
            _han_date,
        ),
        (
            re.compile(r"(上个|上個|上|这个|這個|这|這|本)(?:(月)|(?:周|星期|礼拜|禮拜)([一二三四五六日天])?)"),
            _han_relative,
        ),
    )
