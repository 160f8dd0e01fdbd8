import pytest

from limpet.egress.hosts import parse


@pytest.mark.parametrize(
    ("rule", "host", "port", "admitted"),
    [
        ("example.org", "example.org", 443, True),
        ("example.org", "example.org", 80, True),
        ("example.org", "example.org", 22, False),
        ("Example.ORG.", "example.org", 443, True),
        ("example.org", "a.example.org", 443, False),
        ("example.org", "badexample.org", 443, False),
        ("*.example.org", "a.b.example.org", 443, True),
        ("*.example.org", "example.org", 443, False),
        ("*.example.org", "badexample.org", 443, False),
        ("*.example.org:8443", "a.example.org", 8443, True),
        ("*.example.org:8443", "a.example.org", 443, False),
        ("[::1]:80", "::1", 80, True),
        ("0:0:0:0:0:0:0:1", "::1", 443, True),
    ],
)
def test_which_hosts_a_rule_admits(rule: str, host: str, port: int, admitted: bool) -> None:
    assert parse(rule, setting="x").admits(host, port) is admitted
