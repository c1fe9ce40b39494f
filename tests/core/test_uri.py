"""Normal forms of resource URIs, and what else servers may read in them."""

import pytest
from hypothesis import given, strategies as st

from callwright.core.uri import normalize_uri, split_uri, uri_readings

texts = st.text(alphabet=st.sampled_from("aB:/?#@%.2eEf5\\é \t*"), max_size=24)


@pytest.mark.parametrize(
    ("uri", "normal"),
    [
        ("db://host/users/1", "db://host/users/1"),
        ("DB://Host/Users", "db://host/Users"),
        ("db://Ann@Host:/x", "db://Ann@host/x"),
        ("db://x/%7euser/%2e", "db://x/~user/"),
        ("db://x/a%2fb", "db://x/a%2Fb"),
        ("db://x/100%", "db://x/100%25"),
        ("db://x/é", "db://x/%C3%A9"),
        ("db://x/a/./b/../c", "db://x/a/c"),
        ("db://x/a/..", "db://x/"),
        ("db://x/../../a", "db://x/a"),
        ("ticket:PROJ-1", "ticket:PROJ-1"),
        ("urn:a/../b", "urn:b"),
        ("db:/a/..//b", "db:/.//b"),
        ("a/../B:c", "./B:c"),
        ("", ""),
    ],
)
def test_normal_form(uri: str, normal: str) -> None:
    assert normalize_uri(uri) == normal


@given(texts)
def test_normal_form_is_stable(uri: str) -> None:
    assert normalize_uri(normalize_uri(uri)) == normalize_uri(uri)


@given(texts)
def test_parts_of_a_uri_join_to_the_uri(uri: str) -> None:
    assert "".join(split_uri(uri)) == uri


@given(texts)
def test_readings_include_the_normal_form(uri: str) -> None:
    assert not uri_readings(uri) or normalize_uri(uri) in uri_readings(uri)


def test_the_most_decoded_reading_is_last() -> None:
    assert uri_readings("DB://x/a/../%31")[-1] == "db://x/1"
    assert uri_readings("db://x/a%2f..%2f1")[-1] == "db://x/1"


@pytest.mark.parametrize(
    "uri",
    ["db://x/a/..%2Fb", "db://x/a/%252e%252e/b", "db://x/a\\..\\b", "db://x/a/.\t./b", "db://x//b", "db://x/ａ/‥/b"],
)
def test_readings_include_what_a_lenient_server_sees(uri: str) -> None:
    assert "db://x/b" in uri_readings(uri)


@pytest.mark.parametrize("uri", ["db://x/%ff", "db://x/%c0%ae", "db://x/%25252525252e"])
def test_undecodable_uri_has_no_readings(uri: str) -> None:
    assert uri_readings(uri) == ()
