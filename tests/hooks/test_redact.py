"""The redactor: realistic credentials of many vendors, made up here, and texts that would take quadratic time."""

import random
import re
import string
import time

import pytest

from callwright.hooks.builtin import Redact

_RANDOM = random.Random(7)
_HEX, _LOWER, _ALPHA = "0123456789abcdef", string.ascii_lowercase + string.digits, string.ascii_letters + string.digits
_UPPER, _URL = string.ascii_uppercase + string.digits, string.ascii_letters + string.digits + "_-"
_KINDS = {"h": _HEX, "l": _LOWER, "a": _ALPHA, "u": _UPPER, "w": _URL, "d": string.digits}


def fake(form: str) -> str:
    """Fill a form such as `ghp_{a36}` with random characters, so that no file holds a real-looking key."""
    return re.sub(
        r"\{([hlauwd])(\d+)\}",
        lambda found: (
            "".join(_RANDOM.choice(_KINDS[found[1]]) for _ in range(int(found[2]) - 1))
            + ("7" if found[1] != "h" else "a")
        ),
        form,
    )


FORMS = [
    *("sk-{a48}", "sk-proj-{w74}", "sk-ant-api03-{w93}AA", "sk-or-v1-{h64}", "AIza{w35}", "hf_{a34}", "gsk_{a52}"),
    *("r8_{a37}", "pplx-{a48}", "xai-{a80}", "nvapi-{w64}", "lsv2_pt_{h32}_{h10}", "sk-lf-{h36}"),
    *("AKIA{u16}", "ASIA{u16}", "aws_secret_access_key = {a40}", "ya29.{w120}", "1//0{w60}", "GOCSPX-{w28}"),
    *("{a3}8Q~{w34}", "AccountKey={a86}==", "SharedAccessKey={a43}=", "dop_v1_{h64}", "dp.pt.{a43}", "HRKU-{w36}"),
    *("fo1_{w43}", "LTAI{a20}", "nfp_{a40}", "sbp_{h40}", "pscale_tkn_{w43}", "ghp_{a36}", "gho_{a36}", "ghs_{a36}"),
    *(
        "github_pat_{a22}_{a59}",
        "glpat-{w20}",
        "glrt-{w20}",
        "ATBB{a32}",
        "ATATT3{w180}",
        "npm_{a36}",
        "pypi-AgEI{w90}",
    ),
    *("rubygems_{h48}", "dckr_pat_{w27}", "oy2{l43}", "CLOJARS_{l60}", "xoxb-{d12}-{d12}-{a24}", "xoxp-{d11}-{a40}"),
    *("xapp-1-{u11}-{d13}-{h64}", "https://hooks.slack.com/services/T{u8}/B{u8}/{a24}"),
    *("https://discord.com/api/webhooks/{d18}/{w68}", "M{a23}.{a6}.{w38}", "{d9}:AA{w33}", "SG.{w22}.{w43}"),
    *("key-{h32}", "{h32}-us14", "AC{h32}", "xkeysib-{h64}-{a16}", "sk_live_{a24}", "rk_live_{a24}", "whsec_{a32}"),
    *("sq0atp-{w22}", "shpat_{h32}", "glsa_{a32}_{h8}", "NRAK-{u27}", "sntrys_{a80}", "dapi{h32}", "hvs.{w90}"),
    *("{a14}.atlasv1.{w67}", "pul-{h40}", "tskey-auth-{a12}-{a30}", "phc_{a43}", "lin_api_{a40}", "secret_{a43}"),
    *("pat{a14}.{h64}", "figd_{w40}", "PMAK-{h24}-{h34}", "EZAK{h54}", "eyJ{a30}.eyJ{a60}.{w43}"),
    *("postgres://ann:{a12}@db/app", "password: {a12}", '"api_key": "{a24}"', "DB_PASSWORD='{a10}'", "TOKEN={a32}"),
    *("Authorization: Bearer {w40}", "Authorization: Basic {a28}==", "client_secret={a30}", "--password {a14}"),
    *("mysql://root:{a9}@localhost:3306/x", "curl -u admin:{a14} https://x", "AGE-SECRET-KEY-1{u58}"),
]


@pytest.mark.parametrize("form", FORMS)
def test_credential_is_replaced(form: str) -> None:
    secret = fake(form)
    longest = max(re.findall(r"[A-Za-z0-9]{6,}", secret.split("=")[-1].split(":")[-1]), key=len, default=secret)
    cleaned = Redact().clean(f"line before\n{secret}\nline after")
    assert longest not in cleaned and "[redacted]" in cleaned
    assert cleaned.startswith("line before\n") and cleaned.endswith("\nline after")


def test_private_keys_are_replaced_with_and_without_an_end() -> None:
    head, end = "-----BEGIN " + "RSA PRIVATE KEY-----", "-----END " + "RSA PRIVATE KEY-----"
    body = f"Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,{fake('{h32}')}\n\n{fake('{a64}')}\n"
    assert Redact().clean(f"a\n{head}\n{body}{end}\nb") == "a\n[redacted]\nb"
    assert Redact().clean(f"a\n{head}\n{body}") == "a\n[redacted]"


@pytest.mark.parametrize(
    "text",
    [
        "def tokenize(text: str) -> list[str]: return text.split()",
        "password = getpass.getpass()",
        "token: str | None = None",
        "commit 0123456789abcdef0123456789abcdef01234567",
        "https://example.com/a/b?c=d#e",
        "The secret of a good test is a short name.",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert Redact().clean(text) == text


@pytest.mark.parametrize(
    "piece",
    [
        "-----BEGIN " + "RSA PRIVATE KEY-----\n",
        "-----BEGIN ",
        "eyJaaaaaaaaaa.",
        "eyJ",
        "password",
        "api_key=",
        "a" * 7,
        "sk-",
        "://a:",
        "PuTTY-User-Key-File-2:",
        "token ",
        "-u a:",
        "AC0",
    ],
)
def test_time_grows_with_the_length_alone(piece: str) -> None:
    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        return min(_measure(text) for _ in range(2))

    # eight times the text: quadratic time would be sixty-four times; the margin is for a busy machine
    assert seconds(64_000) < 30 * max(seconds(8_000), 0.0005)


def _measure(text: str) -> float:
    began = time.process_time()
    Redact().clean(text)
    return time.process_time() - began
